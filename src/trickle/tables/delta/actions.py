"""The commits of a Delta table: the lines of one log file as typed actions.

Anything that violates the format is refused: skipping it would lose rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from trickle.errors import kind_of
from trickle.tables.delta.deletion_vectors import vector_path

if TYPE_CHECKING:
    from collections.abc import Mapping


APPLICATION: Final = "trickle"
"""The application id of our transactions in the Delta log."""

FOLLOWS: Final = "trickleFollows"
"""In the commitInfo of a commit of ours on S3: the digest of the version below it, as it was then."""


class MalformedCommitError(Exception):
    """A log file does not have one action per line; the text says where."""


@dataclass(frozen=True, slots=True)
class FileAction:
    """A data or change file that a commit names.

    Attributes:
        action: ``add``, ``remove`` or ``cdc``.
        body: The action's JSON object as the log has it.
        vector: What tells this file's deletion vector from another of the same file, empty if it has none.
        bounds: The least and the greatest value of columns of whole numbers, as far as the statistics tell.
    """

    action: str
    body: Mapping[str, Any] = field(compare=False, hash=False)
    path: str
    vector: str
    size: int
    records: int | None
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict, compare=False, hash=False)

    @property
    def key(self) -> tuple[str, str]:
        """Name the rows: a file and the rows that are masked in it."""
        return self.path, self.vector

    @property
    def masked(self) -> int:
        """Count the rows that the deletion vector masks."""
        vector = self.body.get("deletionVector")
        return int(vector["cardinality"]) if vector else 0


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a Delta table, as in its log.

    Attributes:
        digest: Of the file's lines, the same however they were read.
    """

    version: int
    adds: tuple[FileAction, ...]
    removes: tuple[FileAction, ...]
    feed: tuple[FileAction, ...]
    metadata: Mapping[str, Any] | None
    info: Mapping[str, Any]
    transactions: Mapping[str, int]
    changes_data: bool
    protocol: Mapping[str, Any] | None = None
    digest: str = ""

    @property
    def operation(self) -> str:
        """Return the name of what was done, as ``DESCRIBE HISTORY`` shows it."""
        return str(self.info.get("operation", "UNKNOWN"))


def parse_commit(version: int, text: str) -> Commit:
    """Read the lines of one log file.

    ``changes_data`` is false for compaction: its adds and removes all say ``dataChange: false``.

    Lines end at newlines and nowhere else: texts in statistics may hold U+2028, U+0085 and the like as they are.

    Raises:
        MalformedCommitError: It is empty, or a line is not one action of the format.
    """
    files: dict[str, list[FileAction]] = {"add": [], "remove": [], "cdc": []}
    metadata: Mapping[str, Any] | None = None
    protocol: Mapping[str, Any] | None = None
    info: Mapping[str, Any] = {}
    transactions: dict[str, int] = {}
    changes_data = False
    lines = [line for part in text.split("\n") if (line := part.removesuffix("\r")).strip()]
    if not lines:
        message = "it is empty"
        raise MalformedCommitError(message)
    for number, line in enumerate(lines, 1):
        try:
            kind, body = _action(line)
            if kind in files:
                files[kind].append(file_action(kind, body))
                changes_data = changes_data or (kind != "cdc" and body.get("dataChange") is not False)
            elif kind == "metaData":
                metadata = checked_metadata(body)
            elif kind == "protocol":
                protocol = checked_protocol(body)
            elif kind == "commitInfo":
                info = body
            elif kind == "txn":
                transactions[str(body["appId"])] = int(body["version"])
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
            what = f"has no {error}" if isinstance(error, KeyError) else f"is not an action: {error}"
            message = f"line {number} {what}"
            raise MalformedCommitError(message) from error
    return Commit(
        version=version,
        adds=tuple(files["add"]),
        removes=tuple(files["remove"]),
        feed=tuple(files["cdc"]),
        metadata=metadata,
        info=info,
        transactions=transactions,
        changes_data=changes_data,
        protocol=protocol,
        digest=blake2b("\n".join(lines).encode(errors="surrogatepass"), digest_size=8).hexdigest(),
    )


def _action(line: str) -> tuple[str, Mapping[str, Any]]:
    """Return the one action of a line; some writers name the others too, as null."""
    read = json.loads(line)
    if not isinstance(read, dict):
        message = kind_of(read)
        raise TypeError(message)
    # JSON keeps the last of equal keys. A hook sees all of them, but costs more than all else here.
    if "\\u" in line or any(line.count(f'"{kind}"') > 1 for kind in read):
        pairs = json.loads(line, object_pairs_hook=list)
        found = [(kind, read[kind]) for kind, body in pairs if body is not None]
    else:
        found = [(kind, body) for kind, body in read.items() if body is not None]
    if len(found) != 1:
        message = f"{len(found)} in one line" if found else "nothing in it"
        raise ValueError(message)
    ((kind, body),) = found
    if not isinstance(body, dict):
        message = f"{kind} is {kind_of(body)}"
        raise TypeError(message)
    return kind, body


def checked_protocol(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a ``protocol`` action whose versions are numbers.

    Raises:
        LookupError, TypeError, ValueError: It is not one of the format.
    """
    return {**body, **{name: int(body[name]) for name in ("minReaderVersion", "minWriterVersion")}}


def checked_metadata(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a ``metaData`` action that has what everyone takes for granted.

    Raises:
        LookupError, TypeError, ValueError: It is not one of the format.
    """
    fields = json.loads(body["schemaString"])["fields"]
    if not isinstance(fields, list) or not all(isinstance(field["name"], str) and "type" in field for field in fields):
        message = "its schema has no fields"
        raise TypeError(message)
    partitions = body.get("partitionColumns") or []
    if not isinstance(partitions, list) or not all(isinstance(name, str) for name in partitions):
        message = "its partition columns are not names"
        raise TypeError(message)
    return {**body, "id": str(body["id"]), "configuration": dict(body.get("configuration") or {})}


def file_action(kind: str, body: Mapping[str, Any]) -> FileAction:
    """Read an ``add``, ``remove`` or ``cdc`` action.

    Raises:
        LookupError, TypeError, ValueError: It is not one of the format.
    """
    vector = body.get("deletionVector")
    stats = _statistics(body.get("stats"))
    if stats is None and body.get("stats"):
        body = {name: value for name, value in body.items() if name != "stats"}
    records = (stats or {}).get("numRecords")
    if not isinstance(body["path"], str):
        message = f"path is {kind_of(body['path'])}"
        raise TypeError(message)
    if not isinstance(body.get("partitionValues") or {}, dict):
        message = "its partition values are not by column"
        raise TypeError(message)
    if vector:
        vector_path(vector)
    return FileAction(
        action=kind,
        body=body,
        path=body["path"],
        vector=f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"
        if vector is not None
        else "",
        size=int(body.get("size") or 0),
        records=records if isinstance(records, int) else None,
        bounds=_bounds(stats) if stats else {},
    )


def _bounds(stats: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Return the bounds of whole numbers; texts, which writers cut, and dates are no such bounds."""
    low, high = stats.get("minValues"), stats.get("maxValues")
    if not isinstance(low, dict) or not isinstance(high, dict):
        return {}
    both = ((name, least, high.get(name)) for name, least in low.items())
    return {name: (least, most) for name, least, most in both if type(least) is int and type(most) is int}


def _statistics(text: object) -> Mapping[str, Any] | None:
    """Read a file's statistics; missing or unreadable ones do not affect the rows."""
    try:
        stats = json.loads(text) if isinstance(text, str) and text else None
    except (ValueError, RecursionError):
        return None
    return stats if isinstance(stats, dict) else None
