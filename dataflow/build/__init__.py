"""Building dataflows: scopes, streams, operators, capabilities."""
