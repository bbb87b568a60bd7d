"""Figure 14 of the live version: how long the projected costs take, by load-balancing factor, on Spark.

At the paper's scale, on the grids of Figures 12 and 17. The paper took hundreds of minutes on 64 executors, exactly.
"""

from __future__ import annotations

import tempfile
import time

from bench.experiments.planning.figures import GAMMA, Line, draw_lines, paper_scale
from bench.experiments.planning.workload import transitions, word_count
from bench.registry import figure
from bench.run import Run
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import project


@figure("optimal-14", "running time of PMC by load-balancing factor, on Spark and in one process")
def figure_14(run: Run) -> None:
    from planners.spark import iteration, session
    from planners.spark.folder import Folder

    scale = paper_scale(run)
    on_spark, alone, counts = Line(), Line(), Line()
    spark = session.start("local[2]")
    try:
        with tempfile.TemporaryDirectory() as folder:
            first = MTMProblem(word_count(16), transitions(2, 4), 1.2, 0.0)
            iteration.solve(spark, first, Folder(spark, folder), tasks=4)  # loads what is compiled
            project(first)
            for tau in run.each("tau", scale.taus[-2:] if run.quick else scale.taus):
                if (problem := scale.problem(tau, GAMMA)) is None:
                    continue
                many = sum(problem.partitionings(nodes).count for nodes in problem.counts)
                start = time.perf_counter()
                solution = iteration.solve(spark, problem, Folder(spark, folder), tasks=8)
                on_spark.add(tau, time.perf_counter() - start)
                alone.add(tau, _alone(problem))
                counts.add(tau, many)
                cells = len(problem.cells)
                name = f"tau = {tau}: {many:,} partitionings on {cells} cells, {solution.iterations} sweeps"
                run.report(name, on_spark.y[-1], "s", baseline=alone.y[-1])
    finally:
        spark.stop()
    panels = {
        f"{scale.label}, on the finest grid\nwith at most {scale.most:,} partitionings (s)": {
            "Spark, two cores": on_spark,
            "one process": alone,
        },
        "what it has to solve": {"balanced partitionings": counts},
    }
    note = " The paper: hundreds of minutes on 64 executors, without a grid."
    draw_lines(run, "Running time of PMC by load-balancing factor", "τ", "", panels, log=True, note=note)


def _alone(problem: MTMProblem) -> float:
    start = time.perf_counter()
    project(problem)
    return time.perf_counter() - start
