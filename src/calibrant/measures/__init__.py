"""How far from calibrated, with what certainty: numbers and result objects."""
