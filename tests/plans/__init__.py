"""Plan migration, against a program that looks at all combinations."""
