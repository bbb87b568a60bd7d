"""What `execute` has unless it is told otherwise. It is imported with the package, so this imports nothing."""

WARN_AFTER = 10.0  # seconds in which nothing moves, before somebody looks why
