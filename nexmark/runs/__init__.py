"""Running queries."""
