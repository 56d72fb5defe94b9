"""Local copies of files that never change, of storages whose bytes come slowly into Python."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from weakref import finalize

from trickle.model.cache import Cache


@dataclass(frozen=True, slots=True)
class _Copy:
    path: str
    size: int

    def delete(self) -> None:
        Path(self.path).unlink(missing_ok=True)


class Copies:
    """Local copies by the address of their file, up to a number of bytes; the newest stays whatever its size."""

    def __init__(self, max_bytes: int) -> None:
        """Start without any; the folder is made with the first."""
        self._folder: str | None = None
        self._lock = Lock()
        self._kept: Cache[str, _Copy] = Cache(
            "copies of files", max_bytes=max_bytes, bytes_of=lambda copy: copy.size, least=1, evicted=_Copy.delete
        )

    def new(self) -> str:
        """Return the path of a file to be made."""
        with self._lock:
            if self._folder is None:
                self._folder = mkdtemp(prefix="trickle-")
                finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            return f"{self._folder}/{uuid.uuid4()}"

    def known(self, address: str) -> str | None:
        """Return the path of a copy."""
        kept = self._kept.known(address)
        return None if kept is None else kept.path

    def keep(self, address: str, path: str) -> str:
        """Keep a copy, of two of one file the first; return its path."""
        new = _Copy(path, Path(path).stat().st_size)
        kept = self._kept.get(address, lambda: new)
        if kept is not new:
            new.delete()
        return kept.path
