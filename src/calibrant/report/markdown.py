"""A report as Markdown: verdicts, tables, findings."""
def markdown(s): return ""
