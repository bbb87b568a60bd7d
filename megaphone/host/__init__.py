"""S: holds state."""
