"""Event time: from records in any order to timestamps and frontiers. docs/windows.md explains it to users.

- `moments`: what the time of a record is, as a time of the dataflow.
- `watermarks`: which records are late, and what can still come; by partition, pure.
- `operator`: `stream.event_time(...)`, the operator, whose output has times of its own.
- `late`: what becomes of late records.
"""
