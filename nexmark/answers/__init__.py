"""Answers, and what they are compared with.

- `oracle`: the queries as plain programs over lists of rows. `spark_oracle`: the queries as Spark SQL over files, the
  only module here that imports pyspark.
- `verifying`: whether several answers are the same, and in what they differ.
- `results`: the rows of a run as one file.
"""
