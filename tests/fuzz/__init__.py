"""Random cases, new ones every day: what must hold whatever the data.

Each module of `fuzz.categories` has a function ``case(rng)`` that draws one case and
asserts; `fuzz.driver` runs as many as there is time for. ``make fuzz`` runs them for
longer, and again those that failed.
"""
