"""What type checkers make of programs: `expectations` says it line by line, for mypy to verify."""
