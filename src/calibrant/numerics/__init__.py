"""All mathematics, once: pure functions on arrays (NumPy and SciPy only)."""
