"""Families of calibration maps, and the scikit-learn estimators that fit them.

A family is a frozen dataclass of hyper-parameters with one method, ``fit(sample)``.
It is written once and is then a calibrator, an evaluator and a diagram.
"""
