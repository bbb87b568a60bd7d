"""For authors of operators and of tools: the pieces that the front door does not show."""

from dataflow.build.builder import Context, OperatorBuilder, binary, unary, unary_notify
from dataflow.build.capability import Capability, MessageCapability
from dataflow.build.cuts import Keeps
from dataflow.build.notificator import Notificator
from dataflow.channels.hashing import stable_hash
from dataflow.channels.pact import Batch, Broadcast, Exchange, Pact, Pipeline, ToWorker
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.progress.change_batch import ChangeBatch
from dataflow.progress.graph import Graph, Source, Target
from dataflow.progress.reach import could_result_in, path_summaries
from dataflow.progress.tracker import Tracker, make_tracker
from dataflow.time.antichain import Antichain, MutableAntichain, TotalAntichain
from dataflow.time.order import Summary, less_equal, less_than
from dataflow.time.timestamp import Domain

__all__ = [
    "Antichain",
    "Batch",
    "Broadcast",
    "Capability",
    "ChangeBatch",
    "Context",
    "Domain",
    "Exchange",
    "Graph",
    "InputPort",
    "Keeps",
    "MessageCapability",
    "MutableAntichain",
    "Notificator",
    "OperatorBuilder",
    "OutputPort",
    "Pact",
    "Pipeline",
    "Source",
    "Summary",
    "Target",
    "ToWorker",
    "TotalAntichain",
    "Tracker",
    "binary",
    "could_result_in",
    "less_equal",
    "less_than",
    "make_tracker",
    "path_summaries",
    "stable_hash",
    "unary",
    "unary_notify",
]
