"""What a time is."""
