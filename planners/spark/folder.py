"""What the stages leave for each other: a folder on any file system that Spark knows, reached through Hadoop's API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from planners.errors import BadRequest
from planners.mtm.table_files import END, Seal, footer_start, seal


@dataclass(frozen=True)
class Folder:
    """A folder by its address: a local path, `file:///...`, `hdfs://...`, `s3a://...`."""

    spark: SparkSession
    address: str

    def path(self, *names: str) -> str:
        """The address of something in it."""
        return "/".join([self.address.rstrip("/"), *names])

    def read(self, *names: str, columns: tuple[str, ...], made_by: str) -> DataFrame:
        """A table in it; an error if it is not there whole, with the stage that makes it."""
        if not self.complete(*names):
            raise BadRequest(f"{self.path(*names)} is not there, or not complete: `{made_by}` makes it")
        table = self.spark.read.parquet(self.path(*names))
        if missing := [column for column in columns if column not in table.columns]:
            there = ", ".join(table.columns)
            raise BadRequest(f"{self.path(*names)} has no column {', '.join(missing)}; it has {there}")
        return table

    def complete(self, *names: str) -> bool:
        """Whether a table is there whole: Spark leaves a mark when all parts of it are written."""
        return self.exists(*names, "_SUCCESS")

    def exists(self, *names: str) -> bool:
        path, system = self._reach(*names)
        return bool(system.exists(path))

    def children(self, *names: str) -> list[str]:
        """The names in it, sorted; none if it is not there."""
        path, system = self._reach(*names)
        if not system.exists(path):
            return []
        return sorted(str(status.getPath().getName()) for status in system.listStatus(path))

    def delete(self, *names: str) -> None:
        path, system = self._reach(*names)
        system.delete(path, True)

    def write_text(self, text: str, *names: str) -> None:
        """Through a name that nobody reads, so that a file is there whole or not at all."""
        path, system = self._reach(*names)
        partial, _ = self._reach(*names[:-1], f"_{names[-1]}.partial")
        stream = system.create(partial, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        system.delete(path, False)
        if not system.rename(partial, path):
            raise OSError(f"cannot rename {partial} to {path}")

    def read_text(self, *names: str) -> str:
        return "\n".join(row.value for row in self.spark.read.text(self.path(*names), wholetext=True).collect())

    def seal(self, *names: str) -> Seal:
        """That of a Parquet file. Reads its footer only."""
        path, system = self._reach(*names)
        size = int(system.getFileStatus(path).getLen())
        end = self._from(path, system, max(0, size - END))
        return seal(size, self._from(path, system, footer_start(size, end)))

    def _from(self, path: Any, system: Any, start: int) -> bytes:
        """A file's bytes from there to its end."""
        jvm: Any = self.spark.sparkContext._jvm
        stream = system.open(path)
        try:
            stream.seek(start)
            return bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def _reach(self, *names: str) -> tuple[Any, Any]:
        jvm: Any = self.spark.sparkContext._jvm
        path = jvm.org.apache.hadoop.fs.Path(self.path(*names))
        return path, path.getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration())
