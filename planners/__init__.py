"""What should move where: pure functions from an assignment, loads, sizes and limits to a new assignment.

Here belong the model (assignments, loads, plans), the interval planners (SSM, OMS, MTM-aware), the rebalancing planners
(LLFD, MinTable, MinMig, Mixed), the hashing baselines, transfer schedules, and the closed loop that takes statistics of
a running dataflow to a ``megaphone`` controller. The offline pipeline lives in ``spark/``, the only place here that may
import pyspark.
"""
