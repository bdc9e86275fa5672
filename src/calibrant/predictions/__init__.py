"""Predictions with their labels, in rows or aggregated: what every function accepts."""
