"""One module a category, with the function ``case(rng)``."""
