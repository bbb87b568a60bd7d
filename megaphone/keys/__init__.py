"""Keys: from a key to its bin, and keys that live apart."""
