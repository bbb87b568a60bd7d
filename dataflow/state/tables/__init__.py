"""Tables of keyed state, compiled."""
