"""Folds: what a user writes for one record, and how it is compiled."""
