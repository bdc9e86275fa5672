"""The door: user input becomes arrays here, once, or ends in a clear error."""
