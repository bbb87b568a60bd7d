"""Random programs that crash, at random turns, and go on: what they show must be what they mean.

- `description`: a recoverable program as data; `meaning`: what it means, in plain Python; `generating`: from a seed.
- `outside`: what the world sees of sinks, and its own rules: nothing early, nothing twice. `disk`: a storage that
  delays, fails and tears writes.
- `building`: a description as a dataflow, and the main that feeds it. `timed_meaning`, `timed_building`: windows, joins
  in time and asynchronous calls. `driving`: runs, crashes, and the comparison.
- `mutants`: broken variants of the engine that must be caught.
- `test_pins`: keys that go back into their bins at the time of a snapshot that is written late.
"""
