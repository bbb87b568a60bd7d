"""Compiled code on disk: kept, trusted, told."""
