"""What this package refuses."""

from dataflow import DataflowError


class ControlError(DataflowError, ValueError):
    """A configuration update that makes no sense. The configuration stays as it was."""
