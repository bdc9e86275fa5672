"""Samples, validation of user input, and what all other layers share.

User input becomes arrays here, once, or raises a clear error.
"""
