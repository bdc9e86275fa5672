"""The command line: parse, call one library function, print or write."""
