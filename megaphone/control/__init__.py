"""What is said on the control stream."""
