"""One page that a person can read: data first, then laid out."""
