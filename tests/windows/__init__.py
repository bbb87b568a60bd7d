"""Windows over event time, against a direct evaluation."""
