"""F: routes records."""
