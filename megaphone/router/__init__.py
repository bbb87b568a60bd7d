"""F, which routes records by the configuration at their time, and sends the state that migrates.

- `routing`: the protocol of F, as far as rows and columns agree.
- `rows`: F for rows. `columns`: F for columns.
- `following`: what a joiner must know of configurations, and when a leaver has nothing left.
- `kept_placement`: where bins are, as a share of a snapshot.
"""
