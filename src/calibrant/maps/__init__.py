"""Fitted calibration maps: small frozen values that evaluate, compare and are JSON."""
