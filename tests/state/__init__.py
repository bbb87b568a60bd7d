"""One conformance suite over every store of keyed state."""
