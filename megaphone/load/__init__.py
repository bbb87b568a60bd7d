"""What is known of the load of bins and keys."""
