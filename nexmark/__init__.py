"""The NEXMark suite, the proof that the rest works: an auction site's event stream and eight queries over it.

Here belong the generator, the queries (each written once, with its stateful operators as arguments, so that the native
and the migratable form share one body), the sequential oracle that judges their answers, and the runner.
"""
