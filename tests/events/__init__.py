"""Event time, against direct evaluations."""
