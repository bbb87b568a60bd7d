"""Asking a run something: its folder, its socket, those who ask badly."""
