"""Memory for keyed state."""
