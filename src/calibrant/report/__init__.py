"""One file that a person can read: data first, then laid out."""
