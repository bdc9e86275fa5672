"""Calibration methods: one class each, which calibrates, measures and draws."""
