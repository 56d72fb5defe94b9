"""Files of a Delta table written in the driver, by pyarrow, and the log's actions for them.

Files look as Spark's own: timestamps in microseconds, small decimals as integers, no Arrow schema beside Parquet's.
"""

from __future__ import annotations

import json
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trickle.model.types import STRING
from trickle.tables.arrow.types import are_structs, arrow_facts, has_parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trickle.tables.delta.actions import FileAction
    from trickle.tables.storage.protocol import Sink
    from trickle.tables.storage.schemes import Folder

    Action = Mapping[str, Mapping[str, Any]]

FEED_FOLDER: Final = "_change_data"


class FileWriter:
    """Writes files into a table's folder; none is part of the table until a commit names it."""

    def __init__(self, folder: Folder) -> None:
        """Bind to the table's folder."""
        self.folder = folder
        self.written: list[str] = []
        self.bytes = 0
        self._sinks: list[Sink] = []

    def add(self, rows: pa.Table, partition: Mapping[str, str | None]) -> Action:
        """Write rows of a partition to a data file; returns the action that adds it."""
        path, size = self._write(f"part-00000-{uuid.uuid4()}-c000.snappy.parquet", rows)
        return {
            "add": {
                "path": path,
                "partitionValues": dict(partition),
                "size": size,
                "modificationTime": now_ms(),
                "dataChange": True,
                "stats": statistics(rows),
            }
        }

    def feed(self, rows: pa.Table, partition: Mapping[str, str | None]) -> Action:
        """Write rows of a partition with their ``_change_type`` to a change file; returns the action that names it."""
        self.folder.storage.make_folder(self.folder / FEED_FOLDER)
        path, size = self._write(f"{FEED_FOLDER}/cdc-00000-{uuid.uuid4()}.c000.snappy.parquet", rows)
        return {"cdc": {"path": path, "partitionValues": dict(partition), "size": size, "dataChange": False}}

    def _write(self, name: str, rows: pa.Table) -> tuple[str, int]:
        address = self.folder / name
        self.written.append(address)
        texts = [field.name for field in rows.schema if arrow_facts(field.type) is STRING]
        # Dictionaries pay only for strings; numbers are written several times faster without.
        options = {"store_schema": False, "store_decimal_as_integer": True, "use_dictionary": texts or False}
        with self.folder.storage.writable(address) as sink:
            pq.write_table(rows, sink.file, compression="snappy", write_statistics=_bounded(rows), **options)
        self.bytes += sink.size
        self._sinks.append(sink)
        return name, sink.size

    def put(self, name: str, data: bytes) -> None:
        """Write a file of other bytes."""
        address = self.folder / name
        self.written.append(address)
        self.folder.storage.put_if_absent(address, data)
        self.bytes += len(data)

    def wait(self) -> None:
        """Wait until the written files are there."""
        for sink in self._sinks:
            sink.wait()

    def abandon(self) -> None:
        """Delete the written files."""
        with suppress(OSError):  # one that could not be written is not there
            self.wait()
        self.folder.storage.delete(*self.written)
        self.written = []


def _bounded(rows: pa.Table) -> list[str]:
    """Name the columns whose minima and maxima tell which rows a file may hold.

    Bounds leave NaN out, but to Spark it is greater than any number: it would pass over the file.
    """
    pairs = zip(rows.schema, rows.columns, strict=True)
    flat = [(f, c) for f, c in pairs if not has_parts(f.type)]
    return [f.name for f, c in flat if not (arrow_facts(f.type).is_floating and pc.any(pc.is_nan(c)).as_py())]


def removal(file: FileAction) -> Action:
    """Return the action that takes a file out of the table."""
    body = {
        "path": file.path,
        "deletionTimestamp": now_ms(),
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": file.body.get("partitionValues") or {},
        "size": file.size,
    }
    if file.body.get("deletionVector"):
        body["deletionVector"] = file.body["deletionVector"]
    return {"remove": body}


def statistics(rows: pa.Table) -> str:
    """Return a file's statistics as the log has them: counts, and bounds of the integers, which JSON holds exactly."""
    bounds: dict[str, dict[str, int]] = {"min": {}, "max": {}}
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if not arrow_facts(field.type).is_bounded or column.null_count == len(column):
            continue
        for end, value in pc.min_max(column).as_py().items():
            bounds[end][field.name] = value
    # Of a struct the log has counts for each of its fields, or none.
    nulls = {field.name: rows[field.name].null_count for field in rows.schema if not are_structs(field.type)}
    return json.dumps(
        {"numRecords": rows.num_rows, "minValues": bounds["min"], "maxValues": bounds["max"], "nullCount": nulls}
    )


def now_ms() -> int:
    """Return the time as Delta writes it."""
    return time.time_ns() // 1_000_000
