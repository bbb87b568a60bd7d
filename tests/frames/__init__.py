"""Frames: plans over columns."""
