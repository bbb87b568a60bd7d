"""Interval planners."""
