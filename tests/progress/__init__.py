"""Progress tracking against brute force.

- `graphs`: random dataflow graphs of every kind, from a seed; `pairs`: a user's partially ordered timestamp.
- `simulation`: N workers that follow the protocol (or, on purpose, break it), judged after every event.
- `test_*`: one file per module of `dataflow.progress`, and `test_known_bugs`, the cases that have been bugs elsewhere.
"""
