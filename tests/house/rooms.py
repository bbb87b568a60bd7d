"""The rooms of the house, and which of them may import which.

A line is `room: rooms that it imports at once | rooms that it imports when a function first runs, or for types only`.
The room of a package is its front door, `__init__`, alone. `bench` is not listed: it may import everything, and nothing
imports it. `python -m tests.house.layers` prints the table as the code has it, and `--write` writes it here.
"""

from __future__ import annotations

from tests.house.layers import table

# ruff: noqa: E501 (a room, a line)
ROOMS = table(
    """
dataflow.errors:
dataflow.text:
dataflow.values:
dataflow.time: dataflow.errors
dataflow.progress: dataflow.errors dataflow.text dataflow.time
dataflow.compiled:
dataflow.comm.values:
dataflow.channels: dataflow.build dataflow.columns dataflow.errors dataflow.time dataflow.values | dataflow.comm dataflow.progress dataflow.run
dataflow.columns: dataflow.build dataflow.channels dataflow.compiled dataflow.errors dataflow.time dataflow.values
dataflow.comm: dataflow.channels dataflow.columns dataflow.comm.values dataflow.errors dataflow.progress dataflow.run dataflow.text dataflow.time dataflow.values
dataflow.build: dataflow.channels dataflow.columns dataflow.errors dataflow.operators dataflow.progress dataflow.run dataflow.time dataflow.values | dataflow.events dataflow.members
dataflow.operators: dataflow.build dataflow.channels dataflow.columns dataflow.comm dataflow.errors dataflow.members dataflow.progress dataflow.run dataflow.time dataflow.values
dataflow.events: dataflow.build dataflow.channels dataflow.columns dataflow.errors dataflow.operators dataflow.progress dataflow.time dataflow.values | dataflow.run
dataflow.clients: dataflow.channels dataflow.columns dataflow.errors dataflow.operators dataflow.values
dataflow.sources: dataflow.channels dataflow.clients dataflow.columns dataflow.comm dataflow.errors dataflow.events dataflow.operators dataflow.time dataflow.values
dataflow.sinks: dataflow.channels dataflow.clients dataflow.columns dataflow.errors dataflow.operators dataflow.time dataflow.values
dataflow.members: dataflow.build dataflow.channels dataflow.comm dataflow.errors dataflow.progress dataflow.run dataflow.text dataflow.time dataflow.values
dataflow.run: dataflow.build dataflow.channels dataflow.comm dataflow.errors dataflow.members dataflow.progress dataflow.text dataflow.time | dataflow.operators dataflow.recovery dataflow.values
dataflow.launch: dataflow.asking dataflow.clients dataflow.comm dataflow.compiled dataflow.errors dataflow.execute dataflow.members dataflow.recovery dataflow.run dataflow.text
dataflow.spark: dataflow.comm dataflow.errors dataflow.execute dataflow.launch dataflow.recovery dataflow.run
dataflow.asking: dataflow.build dataflow.comm dataflow.errors dataflow.launch dataflow.recovery dataflow.run | dataflow.members
dataflow.recovery: dataflow.build dataflow.channels dataflow.clients dataflow.comm dataflow.compiled dataflow.errors dataflow.members dataflow.operators dataflow.progress dataflow.run dataflow.time
dataflow.sharing: dataflow.asking dataflow.comm dataflow.launch dataflow.recovery dataflow.run
dataflow.execute: dataflow.asking dataflow.comm dataflow.compiled dataflow.errors dataflow.launch dataflow.run | dataflow.recovery dataflow.sharing
dataflow.__main__: dataflow.asking dataflow.comm dataflow.commands dataflow.errors dataflow.execute dataflow.launch dataflow.recovery dataflow.run | dataflow.page
dataflow.testing: dataflow.channels dataflow.comm dataflow.errors dataflow.execute dataflow.operators dataflow.recovery dataflow.run dataflow.time dataflow.values | dataflow.build
dataflow.commands: dataflow.asking dataflow.build dataflow.comm dataflow.errors dataflow.launch dataflow.recovery dataflow.run dataflow.state dataflow.state.values dataflow.text | dataflow.execute dataflow.page dataflow.spark
dataflow.page: dataflow.asking dataflow.build dataflow.comm dataflow.commands dataflow.errors dataflow.run
dataflow.notebook: dataflow.asking dataflow.commands dataflow.errors dataflow.execute dataflow.recovery dataflow.run dataflow.text
dataflow.lowlevel: dataflow.build dataflow.channels dataflow.progress dataflow.time
dataflow: dataflow.errors dataflow.execute | dataflow.build dataflow.operators dataflow.recovery dataflow.run dataflow.time
dataflow.state.values: dataflow.values
dataflow.state.arrays:
dataflow.state.pieces: dataflow.state.arrays
dataflow.state.store: dataflow.channels dataflow.state.arrays dataflow.state.pieces dataflow.state.values dataflow.time
dataflow.state.memory: dataflow.compiled dataflow.state.arrays
dataflow.state.tables: dataflow.columns dataflow.compiled dataflow.errors dataflow.state.arrays dataflow.state.memory
dataflow.state.folds: dataflow.columns dataflow.compiled dataflow.errors dataflow.state.arrays dataflow.state.memory dataflow.state.tables dataflow.state.values
dataflow.state.stores: dataflow.channels dataflow.columns dataflow.comm dataflow.comm.values dataflow.errors dataflow.state dataflow.state.arrays dataflow.state.folds dataflow.state.memory dataflow.state.pieces dataflow.state.store dataflow.state.tables dataflow.state.values dataflow.time | dataflow.build
dataflow.state: dataflow.build dataflow.channels dataflow.columns dataflow.errors dataflow.events dataflow.operators dataflow.state.arrays dataflow.state.folds dataflow.state.memory dataflow.state.pieces dataflow.state.store dataflow.state.stores dataflow.state.tables dataflow.state.values dataflow.time | dataflow.run
dataflow.joins: dataflow.build dataflow.channels dataflow.columns dataflow.errors dataflow.events dataflow.state dataflow.state.stores dataflow.time dataflow.values
dataflow.windows: dataflow.build dataflow.channels dataflow.columns dataflow.errors dataflow.events dataflow.state dataflow.state.stores dataflow.time dataflow.values

megaphone.errors: dataflow
megaphone.keys: dataflow.channels dataflow.columns dataflow.comm dataflow.lowlevel dataflow.state dataflow.state.pieces dataflow.state.store dataflow.state.stores dataflow.state.tables dataflow.state.values dataflow.time megaphone.errors
megaphone.control: dataflow dataflow.errors dataflow.members dataflow.state.values megaphone.errors megaphone.keys
megaphone.load: dataflow dataflow.build dataflow.channels dataflow.columns dataflow.compiled dataflow.errors dataflow.lowlevel dataflow.state.store dataflow.state.stores dataflow.state.values dataflow.time megaphone.control megaphone.keys
megaphone.router: dataflow.build dataflow.channels dataflow.columns dataflow.lowlevel dataflow.members dataflow.state dataflow.state.pieces dataflow.state.store dataflow.state.stores dataflow.state.values dataflow.time megaphone.control megaphone.keys megaphone.load megaphone.plans
megaphone.host: dataflow.columns dataflow.lowlevel dataflow.state dataflow.state.pieces dataflow.state.store dataflow.time megaphone.keys megaphone.load megaphone.plans megaphone.router
megaphone.assembly: dataflow dataflow.errors dataflow.lowlevel dataflow.members dataflow.operators dataflow.state dataflow.state.store dataflow.state.values dataflow.time megaphone.control megaphone.errors megaphone.keys megaphone.load megaphone.migration megaphone.router | dataflow.run
megaphone.operators: dataflow dataflow.columns dataflow.errors dataflow.events dataflow.joins dataflow.lowlevel dataflow.operators dataflow.state dataflow.state.folds dataflow.state.store dataflow.state.stores dataflow.state.tables dataflow.state.values dataflow.time dataflow.windows megaphone.assembly megaphone.control megaphone.errors megaphone.host megaphone.keys megaphone.load megaphone.plans megaphone.plans.columns megaphone.router
megaphone.frames: dataflow dataflow.columns dataflow.errors dataflow.events dataflow.joins dataflow.operators dataflow.sources dataflow.state.values dataflow.time dataflow.windows megaphone.control megaphone.operators | dataflow.notebook
megaphone.migration: dataflow dataflow.build dataflow.errors dataflow.members dataflow.state.values dataflow.time megaphone.assembly megaphone.control megaphone.errors megaphone.keys megaphone.load | dataflow.run
megaphone.plans: dataflow.channels dataflow.comm dataflow.errors dataflow.run dataflow.state dataflow.state.arrays dataflow.state.pieces dataflow.state.store dataflow.state.stores dataflow.state.values dataflow.time megaphone.control megaphone.errors
megaphone.plans.columns: dataflow.channels dataflow.columns dataflow.comm.values dataflow.compiled dataflow.state.arrays dataflow.state.folds dataflow.state.pieces dataflow.state.store dataflow.state.stores dataflow.state.tables dataflow.state.values dataflow.time megaphone.control megaphone.plans
megaphone.harness: dataflow.errors dataflow.operators dataflow.run dataflow.time | dataflow.members megaphone.harness.plots
megaphone.harness.plots: megaphone.harness
megaphone: dataflow.compiled megaphone.control megaphone.keys megaphone.migration megaphone.operators megaphone.plans | dataflow.state.folds megaphone.frames

planners.errors:
planners.decoding: planners.errors
planners.showing:
planners.model: planners.errors
planners.intervals: dataflow.compiled planners.errors planners.model
planners.mtm: dataflow.compiled planners.decoding planners.errors planners.intervals planners.model
planners.links: planners.errors planners.model | megaphone.migration
planners.rebalance: dataflow.compiled | megaphone.load
planners.loop: planners.errors planners.intervals planners.model planners.rebalance planners.showing
planners.live: dataflow.asking dataflow.build dataflow.comm dataflow.errors dataflow.run planners.errors planners.intervals planners.loop planners.model planners.mtm planners.scaling
planners.plans: dataflow dataflow.columns dataflow.errors dataflow.lowlevel dataflow.state.values planners.errors planners.model planners.showing | megaphone.control
planners.scaling: planners.errors planners.intervals planners.model planners.showing
planners.spark: planners.errors planners.model planners.mtm
planners.cli: planners planners.decoding planners.errors planners.intervals planners.links planners.model | dataflow.commands dataflow.errors planners.live planners.loop planners.plans planners.scaling
planners.__main__: planners.cli
planners:  | planners.errors planners.intervals planners.links planners.model planners.mtm planners.rebalance

nexmark.events: dataflow.compiled | dataflow.spark
nexmark.queries: dataflow dataflow.columns dataflow.compiled dataflow.lowlevel dataflow.state dataflow.state.folds dataflow.state.stores dataflow.state.tables megaphone megaphone.assembly megaphone.control nexmark.events
nexmark.runs: dataflow dataflow.columns dataflow.sources dataflow.state.folds dataflow.time megaphone megaphone.assembly megaphone.control megaphone.harness megaphone.migration nexmark.events nexmark.queries
nexmark.answers: megaphone megaphone.control nexmark.events nexmark.runs
nexmark.commands: dataflow dataflow.errors megaphone megaphone.control megaphone.harness megaphone.harness.plots nexmark.answers nexmark.events nexmark.queries nexmark.runs | dataflow.spark
nexmark.__main__: nexmark.commands
nexmark: nexmark.events
"""
)

# Where a room must never get to, whatever the table above says: (rooms, what they never import, at once only).
ENGINE = ("time", "progress", "build", "run", "channels", "operators", "comm", "launch", "execute", "sharing", "compiled")
CONNECTORS = ("dataflow.sources", "dataflow.sinks")
LAWS: list[tuple[tuple[str, ...], tuple[str, ...], bool]] = [
    (("dataflow",), ("megaphone", "planners", "nexmark", "bench"), False),  # the engine knows nothing of bins
    (("megaphone",), ("planners", "nexmark", "bench"), False),
    (("planners",), ("nexmark", "bench"), False),
    (("planners",), ("megaphone",), True),  # plans are made without an engine
    (("nexmark",), ("planners", "bench"), False),
    (tuple(f"dataflow.{room}" for room in ENGINE), ("dataflow.state",), False),  # the engine knows nothing of keys
    (CONNECTORS, ("dataflow.state", "dataflow.recovery", "dataflow.run", "dataflow.launch"), False),  # they know the door
    (("dataflow.time", "dataflow.errors"), ("trio", "dataflow.comm", "dataflow.run", "dataflow.build"), False),
    (("dataflow.progress",), ("trio", "dataflow.run", "dataflow.build", "dataflow.channels"), False),  # pure: no I/O
    (("dataflow.state.stores", "dataflow.state.host", "dataflow.state.store"), ("dataflow.compiled",), False),
    (("dataflow", "megaphone", "planners", "nexmark", "bench"), ("tests",), False),
]

# Packages that only some rooms may import, at any time.
OUTSIDE: dict[str, tuple[str, ...]] = {
    "pyspark": ("planners.spark", "nexmark.answers.spark_oracle", "nexmark.events.on_spark", "dataflow.spark"),
    "matplotlib": ("megaphone.harness", "planners.cli.picture"),
    "cloudpickle": ("dataflow.launch.parcel",),  # the one place that makes pickles of users' functions
    "msgpack": ("dataflow.comm",),
    "polars": ("dataflow.columns", "megaphone.frames.collecting"),
    # Extras: imported when somebody asks for them.
    "obstore": ("dataflow.recovery.object_store", "dataflow.clients.buckets"),
    "psycopg": ("dataflow.clients.postgres", "dataflow.sources.changes", "dataflow.sinks.postgres"),
    "confluent_kafka": ("dataflow.sources.kafka", "dataflow.sinks.kafka"),
    "nats": ("dataflow.clients.nats", "dataflow.sources.nats", "dataflow.sinks.nats"),
    "redis": ("dataflow.clients.redis", "dataflow.sources.redis", "dataflow.sinks.redis"),
    "h11": ("dataflow.clients.http", "dataflow.sources.webhooks"),
    "wsproto": ("dataflow.clients.websockets",),
    "deltalake": ("dataflow.sinks.delta",),
    "IPython": ("dataflow.notebook.showing", "dataflow.run.cells"),
    "ipywidgets": ("dataflow.notebook.showing",),
    "hypercorn": ("dataflow.page.serving",),
    "starlette": ("dataflow.page.app",),
    "opentelemetry": ("dataflow.run.telemetry",),
    "numba": (
        "dataflow.compiled",
        "dataflow.columns",
        "dataflow.state.tables",
        "dataflow.state.memory",
        "dataflow.state.folds",
        "nexmark.events",
    ),
    "trio": (
        "dataflow.asking",
        "dataflow.clients",
        "dataflow.comm",
        "dataflow.commands",
        "dataflow.sharing",
        "dataflow.launch",
        "dataflow.members",
        "dataflow.operators",
        "dataflow.page",
        "dataflow.recovery",
        "dataflow.run",
        "dataflow.sources",
        "dataflow.spark",
        "dataflow.testing",
        "megaphone.control",
        "megaphone.frames",
        "megaphone.harness",
    ),
}
