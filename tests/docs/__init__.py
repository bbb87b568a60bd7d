"""Tests of the documentation as a site.

- `console`: runs the commands that a page shows, and compares what they print
- `test_tutorial`: every program and command of the tutorial
"""
