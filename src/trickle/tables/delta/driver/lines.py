"""The texts of a commit that the driver makes: its lines, and the checksum beside it."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from trickle._version import __version__
from trickle.tables.delta.actions import APPLICATION, FOLLOWS
from trickle.tables.delta.driver.write import now_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.driver.write import Action


def commit_lines(
    actions: Iterable[Action],
    *,
    mode: str,
    partition_by: Sequence[str] = (),
    number: int,
    record: str,
    read: int,
    metrics: Mapping[str, int],
    stamp: int | None = None,
    follows: str | None = None,
) -> str:
    """Return the text of a commit: what Delta's own would say of a write, with our record and transaction mark.

    ``stamp`` is its time in milliseconds, for tables whose commits must say it; ``follows`` the digest of the commits below it,
    where a late one may overwrite them.
    """
    info: dict[str, Any] = {
        "timestamp": now_ms(),
        "operation": "WRITE",
        "operationParameters": {"mode": mode, "partitionBy": json.dumps(list(partition_by))},
        "readVersion": read,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": {name: str(value) for name, value in metrics.items()},
        "userMetadata": record,
        "engineInfo": f"Trickle/{__version__}",
        "txnId": str(uuid.uuid4()),
    }
    if stamp is not None:
        info["inCommitTimestamp"] = stamp
    if follows is not None:
        info[FOLLOWS] = follows
    mark = {"appId": APPLICATION, "version": number, "lastUpdated": now_ms()}
    lines = [{"commitInfo": info}, {"txn": mark}, *actions]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def checksum_text(
    files: Sequence[FileAction], metadata: Mapping[str, Any], protocol: Mapping[str, Any], stamp: int | None = None
) -> str:
    """Return the text of the optional file beside a version that tells its totals and metadata: it saves Spark a job."""
    body: dict[str, Any] = {
        "tableSizeBytes": sum(file.size for file in files),
        "numFiles": len(files),
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": metadata,
        "protocol": protocol,
    }
    if "domainMetadata" not in (protocol.get("writerFeatures") or ()):  # where there may be some, Delta looks
        body["domainMetadata"] = []
    if stamp is not None:
        body["inCommitTimestampOpt"] = stamp
    return json.dumps(body)
