"""A commit to a Delta log on a local file system, written in the driver.

A version is made by linking a finished file to its name: that fails if the name is taken, so of two writers one wins,
and no reader ever sees half a commit. A crash before the link leaves only files that no version names.
"""

from __future__ import annotations

import json
import os
import uuid
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING, Any, Final

from trickle._version import __version__
from trickle.tables.delta.commit import APPLICATION
from trickle.tables.delta.driver.write import now_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.driver.write import Action


_DRAFTS: Final = ".trickle-*.tmp"
_OLD_SECONDS: Final = 3600.0
"""A transaction lives for milliseconds; one of this age is a killed process's."""


def commit_lines(
    actions: Iterable[Action], *, mode: str, number: int, record: str, read: int, metrics: Mapping[str, int]
) -> str:
    """Give the text of a commit: what Delta's own would say of a write, with our record and transaction mark."""
    info: dict[str, Any] = {
        "timestamp": now_ms(),
        "operation": "WRITE",
        "operationParameters": {"mode": mode, "partitionBy": "[]"},
        "readVersion": read,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": {name: str(value) for name, value in metrics.items()},
        "userMetadata": record,
        "engineInfo": f"Trickle/{__version__}",
        "txnId": str(uuid.uuid4()),
    }
    mark = {"appId": APPLICATION, "version": number, "lastUpdated": now_ms()}
    lines = [{"commitInfo": info}, {"txn": mark}, *actions]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def put_commit(log: Path, version: int, text: str) -> None:
    """Make a version, all or nothing.

    Raises:
        FileExistsError: Another writer made it first.
    """
    transaction, made = _transaction(log, text), log / f"{version:020d}.json"
    try:
        os.link(transaction, made)
    except FileExistsError:
        if not transaction.samefile(made):  # a network file system may have answered twice
            raise
    finally:
        with suppress(OSError):
            transaction.unlink()


def put_checksum(
    log: Path, version: int, files: Sequence[FileAction], metadata: Mapping[str, Any], protocol: Mapping[str, Any]
) -> None:
    """Put the optional file beside a version that tells its totals and metadata: it saves Spark a job when it reads."""
    body = {
        "tableSizeBytes": sum(file.size for file in files),
        "numFiles": len(files),
        "numMetadata": 1,
        "numProtocol": 1,
        "domainMetadata": [],  # tables that may have some are none of ours
        "metadata": metadata,
        "protocol": protocol,
    }
    # Without it the version is as good, only slower to read.
    with suppress(OSError):
        _transaction(log, json.dumps(body), lasting=False).replace(log / f"{version:020d}.crc")


def sweep_transactions(log: Path) -> None:
    """Delete the transactions that killed processes left."""
    for transaction in log.glob(_DRAFTS):
        with suppress(OSError):  # another one sweeps too
            if time() - transaction.stat().st_mtime > _OLD_SECONDS:
                transaction.unlink()


def _transaction(log: Path, text: str, *, lasting: bool = True) -> Path:
    path = log / f".trickle-{uuid.uuid4()}.tmp"
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        if lasting:
            os.fsync(file.fileno())
    return path
