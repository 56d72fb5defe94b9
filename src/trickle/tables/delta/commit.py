"""One conditional commit to a Delta table, carrying a record.

The record is the commit's ``userMetadata``; a ``SetTransaction`` of the application ``trickle``, numbered one higher at
each commit, marks it as ours. Delta refuses a commit if one that it did not see set the same application's transaction,
so of two refreshes that start from one version one wins, on any storage with an atomic log store. A local file system
has none between processes: there a lock file is held from the last look at the log to the end of the commit.

MERGE would need these things as session settings, which parallel refreshes in one session would mix up, and scans the
table twice; a transaction of our own takes them as arguments.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as fn

from trickle.errors import ConflictError, StateError
from trickle.model.names import quote
from trickle.model.types import is_text
from trickle.tables.delta import LOG_FOLDER
from trickle.tables.delta.actions import APPLICATION, FileAction, parse_commit
from trickle.tables.storage.schemes import folder_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame

    from trickle.tables.delta.jvm import Jvm
    from trickle.tables.delta.table import DeltaTable


_EMPTY: Final = "an empty text in the partition column "


def conflict(name: str) -> ConflictError:
    """Build the error of the refresh that came second."""
    return ConflictError(
        "CONCURRENT_REFRESH",
        f"Another writer committed to stream table {name} while this refresh was running; nothing was written.",
        hint="Refresh again; it starts from the other one's result.",
    )


def commit_lock(location: str) -> AbstractContextManager[None]:
    """Hold the lock of the table, if its storage has locks."""
    folder = folder_at(location)
    return nullcontext() if folder is None else folder.storage.lock(folder / f"{LOG_FOLDER}/.trickle.lock")


def sweep(table: DeltaTable, version: int) -> None:
    """Delete unfinished files that killed processes left in a log, now and then."""
    if table.folder is not None and version % table.options.sweep_interval == 0:
        table.folder.storage.sweep(table.folder / LOG_FOLDER)


class Transaction:
    """A transaction on one snapshot of a table: read files, write files, then ``commit`` all at once.

    It reads the whole table as far as conflicts go, so a data-changing commit by anyone in between makes it fail.
    """

    def __init__(self, table: DeltaTable, name: str) -> None:
        """Start on the newest snapshot; known files save a Spark job."""
        self.handle = handle = table.handle
        self.name = name
        self.snapshot: Jvm = handle.update()
        self.version = int(self.snapshot.version())
        self._transaction: Jvm = handle.start(self.snapshot)
        self._transaction.readWholeTable()
        self._transaction.readTxn().addOne(APPLICATION)
        self._written: list[FileAction] = []
        self._table = table
        self.is_redefined = False

    @property
    def has_feed(self) -> bool:
        """Return whether the table keeps a change feed."""
        return self.handle.has_feed(self.snapshot)

    def files(self) -> list[tuple[FileAction, Jvm]]:
        """Return the table's files, each with Delta's own action for it."""
        known = self._table.files(self.version)
        if known is not None:
            return [(file, self.handle.action("add", file.body)) for file in known]
        found = [(_parsed(action), action) for action in self.handle.all_files(self._transaction)]
        self._table.learn_files(self.version, [file for file, _ in found])
        return found

    def redefine(self, metadata: Mapping[str, Any]) -> None:
        """Let the commit give the table this ``metaData`` action; rows are written with its schema from here on."""
        self._transaction.updateMetadata(self.handle.action("metaData", metadata), False)
        self.is_redefined = True

    def redefinition(self) -> list[dict[str, Any]]:
        """Return the actions that give the table its new metadata, and the protocol that these need."""
        if not self.is_redefined:
            return []
        protocol = str(self._transaction.protocol().json())
        changed = [protocol] if protocol != str(self.snapshot.protocol().json()) else []
        return [json.loads(text) for text in (*changed, str(self._transaction.metadata().json()))]

    def write(self, rows: DataFrame) -> list[Jvm]:
        """Write rows to files that no version names yet; returns the actions that would."""
        with _conflicts_named(self.name), self._empty_texts_named():
            written = self._transaction.writeFiles(self._without_empty_texts(rows)._jdf)
        actions = [written.apply(place) for place in range(written.size())]
        self._written += [_parsed(action) for action in actions]
        return actions

    def _without_empty_texts(self, rows: DataFrame) -> DataFrame:
        """Return rows that fail where a partition column is an empty text: Delta would store it as NULL, another row."""
        columns = self._transaction.metadata().partitionColumns()
        names = [str(columns.apply(place)) for place in range(columns.size())]
        texts = {field.name for field in rows.schema.fields if is_text(field.dataType.simpleString())}
        checked = {}
        for name in filter(texts.__contains__, names):
            column = fn.col(quote(name))
            checked[name] = fn.when(column == "", fn.raise_error(fn.lit(_EMPTY + name))).otherwise(column)
        return rows.withColumns(checked) if checked else rows

    @contextmanager
    def _empty_texts_named(self) -> Iterator[None]:
        try:
            yield
        except (Py4JJavaError, PySparkException) as error:
            found = re.search(re.escape(_EMPTY) + "(.*)", str(error))
            if found is None:
                raise
            raise StateError(
                "EMPTY_PARTITION",
                f"{self.name}: column {found[1]} has an empty text; as a partition column, Delta stores it as NULL.",
                hint="Store the table otherwise (cluster_by), or have the query give another text.",
            ) from error

    def added_rows(self) -> int:
        """Count the rows in the data files written so far."""
        return sum(file.records or 0 for file in self._written if file.action == "add")

    def metrics(self) -> dict[str, int]:
        """Return what the table's history shows of the files written so far."""
        adds = [file for file in self._written if file.action == "add"]
        size = sum(file.size for file in self._written)
        return {"numFiles": len(adds), "numOutputBytes": size, "numOutputRows": self.added_rows()}

    def commit(self, actions: Iterable[Jvm], mode: str, number: int, record: str) -> int:
        """Make the next version; returns its number. ``mode`` is what the table's history shows, Append or Overwrite."""
        mark = self.handle.action("txn", {"appId": APPLICATION, "version": number})
        operation = self.handle.write_operation(mode, record)
        with _conflicts_named(self.name):
            return int(self._transaction.commit(self.handle.seq([*actions, mark]), operation))

    def abandon(self) -> None:
        """Delete the written files, which no version refers to."""
        for file in self._written:
            self.handle.delete(file.path)
        self._written = []


def _parsed(action: Jvm) -> FileAction:
    commit = parse_commit(0, str(action.json()))
    (file,) = (*commit.adds, *commit.removes, *commit.feed)
    return file


@contextmanager
def _conflicts_named(name: str) -> Iterator[None]:
    """Turn Delta's concurrency errors into ours."""
    try:
        yield
    except Py4JJavaError as error:
        if "Concurrent" in _class_name(error.java_exception):
            raise conflict(name) from error
        raise
    except PySparkException as error:
        if "CONCURRENT" in str(error.getCondition() or "") or "Concurrent" in type(error).__name__:
            raise conflict(name) from error
        raise


def _class_name(thrown: Any) -> str:
    return str(thrown.getClass().getName())
