"""Workers as guests of a Spark cluster: each is the child of a task of a barrier stage.

    import dataflow.spark
    results = dataflow.spark.execute(main, workers=4, session=spark)

- `driver`: `execute`, in the process that has the session. `life`: its jobs, and who is a member. `job`: one barrier
  job, and what its end means.
  `rooms`: whether the session has room for the workers, and the session that the command line makes.
- `shipping`: which packages go to the executors, as an archive. `order`: what each guest is told, as bytes.
- `task`: what runs in Spark's own Python process. It is sent by value, and needs nothing of ours.
- `guest`: the process that the task starts; it supervises one worker (see `dataflow.launch`). `outcome`: what it hands
  back.
- `home`: where the driver hears what workers print; `phone`: how guests tell it.

`dataflow/commands/on_spark.py` is `python -m dataflow run --on spark`.

pyspark is imported when something is run. The whole is in docs/internals/guests.md.
"""

from dataflow.spark.driver import execute

__all__ = ["execute"]
