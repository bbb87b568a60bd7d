"""What answers are held against."""
