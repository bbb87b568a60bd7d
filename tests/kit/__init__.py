"""The test kit for users: `dataflow.testing`."""
