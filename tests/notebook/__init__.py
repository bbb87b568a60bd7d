"""Notebooks: a real Jupyter kernel."""
