"""What the stages leave for each other: a folder on any file system that Spark knows, reached through Hadoop's API."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from planners.errors import BadRequest
from planners.mtm.table_files import END, Seal, footer_start, seal


class HadoopPath(Protocol):
    """An address, in Java. This and what follows are typed as far as they are used here: py4j has no types."""

    def getFileSystem(self, configuration: object) -> HadoopFiles: ...
    def getName(self) -> str: ...


class FileStatus(Protocol):
    """What a Hadoop file system knows of a file without opening it."""

    def getPath(self) -> HadoopPath: ...
    def getLen(self) -> int: ...


class HadoopStream(Protocol):
    """A file that is open."""

    def seek(self, start: int) -> None: ...
    def write(self, data: bytearray) -> None: ...
    def close(self) -> None: ...


class HadoopFiles(Protocol):
    """A Hadoop file system."""

    def exists(self, path: HadoopPath) -> bool: ...
    def listStatus(self, path: HadoopPath) -> Iterable[FileStatus]: ...
    def getFileStatus(self, path: HadoopPath) -> FileStatus: ...
    def delete(self, path: HadoopPath, recursive: bool) -> bool: ...
    def rename(self, path: HadoopPath, to: HadoopPath) -> bool: ...
    def open(self, path: HadoopPath) -> HadoopStream: ...
    def create(self, path: HadoopPath, overwrite: bool) -> HadoopStream: ...


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
        """Writes under a name that nobody reads, and renames: a file is there whole or not at all."""
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
        """The seal of a Parquet file. Reads its footer only."""
        path, system = self._reach(*names)
        size = int(system.getFileStatus(path).getLen())
        end = self._from(path, system, max(0, size - END))
        return seal(size, self._from(path, system, footer_start(size, end)))

    def _from(self, path: HadoopPath, system: HadoopFiles, start: int) -> bytes:
        """A file's bytes from there to its end."""
        jvm = self.spark.sparkContext._jvm
        assert jvm is not None  # a session that runs has one
        stream = system.open(path)
        try:
            stream.seek(start)
            return bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def _reach(self, *names: str) -> tuple[HadoopPath, HadoopFiles]:
        jvm = self.spark.sparkContext._jvm
        assert jvm is not None
        path: HadoopPath = jvm.org.apache.hadoop.fs.Path(self.path(*names))
        return path, path.getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration())
