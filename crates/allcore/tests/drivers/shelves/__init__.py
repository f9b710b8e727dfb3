"""A Django application of two models, for the driver checks."""
