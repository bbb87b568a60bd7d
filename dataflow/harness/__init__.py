"""wip"""
from dataflow.harness.histogram import Histogram
from dataflow.harness.schedule import Schedule
__all__ = ["Histogram", "Schedule"]
