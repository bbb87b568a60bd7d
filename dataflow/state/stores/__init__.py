"""Stores of keyed state.

- `column_store`: what stores in columns have in common. `row_store`: state in Python objects.
- `portions`: a bin of Python objects as bytes. `weighing`: about how long those would be.
"""
