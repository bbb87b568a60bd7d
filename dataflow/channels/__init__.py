"""How batches get from an operator's output to the next operator's input.

- `ports`: the two ends as an operator sees them: `InputPort` to take from, `OutputPort` to give to.
- `pact`: who gets which records: `Pipeline`, `Exchange`, `Broadcast`.
- `channel`: the way in between: counts each message and puts it into a local queue or hands it to the transport.
- `binned`: a batch that is sorted by bins. `hashing`: hashes of keys that are alike in every process and on every host.
- `blame`: names the record at which a function of the program's raised.
"""
