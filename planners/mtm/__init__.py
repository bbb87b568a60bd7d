"""MTM-aware planning."""
