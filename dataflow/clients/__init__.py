"""What sources and sinks share when they talk to a server of somebody else's. Nothing here knows of dataflows.

- `extras`: packages that not everybody has, and how to get them. `payloads`: records as bytes, for those that carry
  bytes.
- `buckets`: object stores. `http`, `nats`, `redis`, `websockets`: connections. `postgres`, `pgoutput`: changes of
  databases. `standard`: standard input.
- `asyncio_thread`: an asyncio loop in a thread, for libraries that know nothing of trio. `background`: a task beside a
  generator.
"""
