"""Checkpoints of a log, read without Spark: what a table was at a version, however many commits made it so.

Forms  ``v.checkpoint.parquet``, one file; ``v.checkpoint.part.parts.parquet``, several that count only together;
       ``v.checkpoint.uuid.json`` or ``.parquet``, which may refer to files of ``_sidecars`` for the actions on files
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from trickle.errors import kind_of
from trickle.tables.delta.actions import FileAction, file_action

if TYPE_CHECKING:
    from trickle.tables.storage.schemes import Folder

Kind = Literal["metaData", "protocol"]

_NAME: Final = re.compile(
    r"(?P<version>\d{20})\.checkpoint\.(?:(?P<part>\d{10})\.(?P<parts>\d{10})\.|.+\.)?(?:parquet|json)"
)
UNREADABLE: Final = (LookupError, OSError, TypeError, ValueError, RecursionError, pa.ArrowException)
"""What reading a checkpoint raises that is damaged, or not of the format."""

_PARSED: Final = frozenset({"stats_parsed", "partitionValues_parsed"})
"""Parts of an action that repeat others in another form."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that is whole by its names.

    Attributes:
        log: The folder of the log.
        names: Its files.
    """

    log: Folder
    version: int
    names: tuple[str, ...]

    def action(self, kind: Kind) -> Mapping[str, Any] | None:
        """Return the ``metaData`` or ``protocol`` action, None if it does not tell.

        Raises:
            UNREADABLE: It cannot be read, or is not of the format.
        """
        return next((body for name in self.names for body in _bodies(self._file(name), kind)), None)

    def adds(self) -> list[FileAction]:
        """Return the files of the table.

        Raises:
            UNREADABLE: It cannot be read, or is not of the format.
        """
        found: list[FileAction] = []
        for file in map(self._file, self.names):
            sidecars = [f"_sidecars/{body['path']}" for body in _bodies(file, "sidecar")]
            for one in (file, *map(self._file, sidecars)):
                found.extend(file_action("add", body) for body in _bodies(one, "add"))
        return found

    def _file(self, name: str) -> bytes | str | BinaryIO:
        """Return the bytes of a file of JSON, or a file of Parquet as pyarrow takes it."""
        storage, address = self.log.storage, self.log / name
        return storage.get(address) if name.endswith(".json") else storage.readable(address)


def find_checkpoint(log: Folder, upto: int) -> Checkpoint | None:
    """Return the newest whole checkpoint up to a version."""
    found: dict[tuple[int, int], dict[str, str]] = {}
    for name in log.storage.names(log.address):
        match = _NAME.fullmatch(name)
        if match is not None and int(match["version"]) <= upto:
            parts = int(match["parts"] or 1)
            found.setdefault((int(match["version"]), parts), {})[match["part"] or name] = name
    for (version, parts), names in sorted(found.items(), reverse=True):
        if parts == 1:  # files of one version that are each whole say the same
            return Checkpoint(log, version, (min(names.values()),))
        if len(names) == parts:
            return Checkpoint(log, version, tuple(sorted(names.values())))
    return None


def _bodies(place: bytes | str | BinaryIO, kind: str) -> Iterator[dict[str, Any]]:
    """Return the actions of a kind in one file."""
    if isinstance(place, bytes):
        for line in place.decode().split("\n"):
            body = _object(json.loads(line)).get(kind) if line.strip() else None
            if body is not None:
                yield _object(body)
        return
    with pq.ParquetFile(place) as file:
        schema = file.schema_arrow
        if kind not in schema.names:
            return
        parts = [part.name for part in schema.field(kind).type]
        wanted = [f"{kind}.{part}" for part in parts if part not in _PARSED]
        if "stats_parsed" in parts and "stats" not in parts:
            wanted.append(f"{kind}.stats_parsed.numRecords")
        rows = file.read(wanted).column(kind).drop_null().to_pylist()
    yield from (_body(_object(row)) for row in rows)


def _object(read: object) -> dict[str, Any]:
    if not isinstance(read, dict):
        message = f"{kind_of(read)} where an action should be"
        raise TypeError(message)
    return read


def _body(row: dict[str, Any]) -> dict[str, Any]:
    """Return an action as its JSON is: without what is not said, its maps, which Parquet gives as pairs, as objects."""
    body = {name: value for name, value in row.items() if value is not None}
    for name in ("configuration", "partitionValues", "tags"):
        if name in body:
            body[name] = dict(body[name])
    parsed = _object(body.pop("stats_parsed", {}))
    if parsed.get("numRecords") is not None:
        body["stats"] = json.dumps({"numRecords": parsed["numRecords"]})
    if "deletionVector" in body:
        body["deletionVector"] = {
            name: value for name, value in _object(body["deletionVector"]).items() if value is not None
        }
    return body
