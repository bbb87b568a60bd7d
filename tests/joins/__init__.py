"""Joins over event time, against direct evaluations."""
