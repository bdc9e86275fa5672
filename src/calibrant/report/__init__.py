"""Reports: a summary of predictions as plain data, laid out as a page, PDF or text."""
