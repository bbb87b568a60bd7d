"""Moves over links."""
