"""What of Delta tables is left to Spark: a row for each tie, what the documentation says of it, and whether a table has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trickle.tables.arrow.types import arrow_facts
from trickle.tables.delta.driver.fit import unread_features
from trickle.tables.storage.schemes import why_spark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trickle.tables.delta.table import DeltaTable

Found = Callable[["DeltaTable", int, Sequence[str]], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Tie:
    """Something that ties reading a table to Spark.

    Attributes:
        text: What it is, for a table of such things.
        instead: What to do to be free of it.
        found: Says of a version and some columns what there is of it.
    """

    text: str
    instead: str
    found: Found


def _storage(table: DeltaTable, _: int, __: Sequence[str]) -> Iterator[str]:
    if table.folder is None and (why := why_spark(table.location)) is not None:
        yield f"only Hadoop knows {why}"


def _coordinated(table: DeltaTable, _: int, __: Sequence[str]) -> Iterator[str]:
    if table.folder is not None and not table.log.is_plain:
        yield "a catalog coordinates its commits"


def _features(table: DeltaTable, version: int, _: Sequence[str]) -> Iterator[str]:
    names = unread_features(table.log.protocol(version))
    if names:
        yield f"its feature {', '.join(names)}"


def _columns(table: DeltaTable, version: int, columns: Sequence[str]) -> Iterator[str]:
    fields = table.layout(version).fields
    for name in columns:
        if name in fields and fields[name] is None:
            yield f"the type of its column {name}"


def _partitions(table: DeltaTable, version: int, columns: Sequence[str]) -> Iterator[str]:
    layout = table.layout(version)
    for name in columns:
        field = layout.fields.get(name)
        if name in layout.partitions and field is not None and not arrow_facts(field.type).is_partitioned:
            yield f"the type of its partition column {name}"


def _files(table: DeltaTable, version: int, _: Sequence[str]) -> Iterator[str]:
    files, most = table.files(version), table.options.lookup_files
    if files is None and table.log.is_plain:
        yield f"a log of more than {table.options.log_replay} commits since its newest checkpoint"
    elif files is not None and len(files) > most:
        yield f"its {len(files):,} files: a look-up whose keys may be in more than {most:,} of them"


TIES: Final[Mapping[str, Tie]] = MappingProxyType(
    {
        "storage": Tie(
            "storage that only Hadoop knows, other than HDFS, or credentials that do not map",
            "keep changing tables on a disk, an object store or HDFS",
            _storage,
        ),
        "coordinated commits": Tie(
            "commits that a catalog coordinates", "drop the table feature `coordinatedCommits`", _coordinated
        ),
        "features": Tie(
            "reader features other than deletion vectors, column mapping, type widening, `TIMESTAMP_NTZ` and v2 checkpoints",
            "drop the feature, if the table does not need it",
            _features,
        ),
        "columns": Tie(
            "columns of maps, variants, texts with a collation, and structs under column mapping, if the query reads them",
            "keep what changes often in columns of other types: arrays of entries for maps",
            _columns,
        ),
        "partitions": Tie(
            "partition columns of instants, binaries and floating-point numbers",
            "partition by a date or a text",
            _partitions,
        ),
        "files": Tie(
            "look-ups in more files than `lookup_files` after pruning by statistics; logs without a checkpoint for more than "
            "`log_replay` commits",
            "`OPTIMIZE` the table, cluster it by the key of joins",
            _files,
        ),
    }
)
"""What the log tells. Files may tie a table too: of Spark 2, with dates of the old calendar, or with types that differ from
the table's by more than the width of whole numbers."""


def left_to_spark(table: DeltaTable, version: int, columns: Sequence[str]) -> list[str]:
    """Say for what of a version Spark is needed to read some columns; nothing if the driver does it."""
    if table.folder is None:
        return list(_storage(table, version, columns))
    return [found for tie in TIES.values() for found in tie.found(table, version, columns)]
