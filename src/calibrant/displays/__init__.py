"""Diagrams: computed first, drawn second; ``frame()`` has what is drawn."""
