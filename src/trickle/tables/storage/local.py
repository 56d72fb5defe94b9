"""Files on a local file system, or one that is mounted like it."""

from __future__ import annotations

import fcntl
import os
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Final

from trickle.tables.storage.protocol import NOTHING_SEEN, Scannable, Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from trickle.tables.storage.protocol import Mark

_UNFINISHED: Final = ".trickle-*.tmp"
_OLD_SECONDS: Final = 3600.0
"""A file is put within milliseconds; an unfinished one of this age is a killed process's."""

_NOT_THERE: Final = (FileNotFoundError, NotADirectoryError)


def _stat(address: str) -> os.stat_result | None:
    """Look at a file; a ``Path`` takes as long to make as the look itself, and every refresh looks at all its sources."""
    try:
        return os.stat(address)  # noqa: PTH116
    except (*_NOT_THERE, ValueError):  # a name that no file can have
        return None


class LocalStorage:
    """A local file system; addresses are absolute paths."""

    overwrites_late = False

    def versions(self, log: str, known: int) -> Mapping[int, Mark]:
        """Look for the known number and the next ones; list the folder if none is known, or one is missing."""
        found: dict[int, Mark] = {}
        next_ = known
        while next_ >= 0 and (mark := self.mark(f"{log}/{next_:020d}.json")) is not None:
            found[next_] = mark
            next_ += 1
        if found and _stat(f"{log}/{next_ + 1:020d}.json") is None:
            return found
        numbers = (name[:20] for name in self.names(log) if len(name) == 25 and name.endswith(".json"))
        newest = max((int(number) for number in numbers if number.isdigit()), default=-1)
        if newest >= 0 and (mark := self.mark(f"{log}/{newest:020d}.json")) is not None:
            found[newest] = mark
        return found

    def mark(self, address: str) -> tuple[int, ...] | None:
        """Return inode, time and size."""
        stat = _stat(address)
        return None if stat is None else (stat.st_ino, stat.st_mtime_ns, stat.st_size)

    def size(self, address: str) -> int:
        """Return the bytes of a file."""
        return Path(address).stat().st_size

    def get(self, address: str) -> bytes:
        """Read a file."""
        try:
            return Path(address).read_bytes()
        except NotADirectoryError as error:
            raise FileNotFoundError(address) from error

    def get_marked(self, address: str, seen: Mark | None = None) -> tuple[bytes, Mark | None]:  # noqa: ARG002
        """Look at a file, then read it: a write in between makes another mark."""
        mark = self.mark(address)
        return self.get(address), mark

    def get_many(
        self,
        addresses: Sequence[str],
        seen: Mapping[str, Mark] = NOTHING_SEEN,  # noqa: ARG002 - the files are here
    ) -> list[tuple[bytes, Mark | None] | None]:
        """Read files, one after the other."""
        found: list[tuple[bytes, Mark | None] | None] = []
        for address in addresses:
            try:
                found.append(self.get_marked(address))
            except FileNotFoundError:
                found.append(None)
        return found

    def get_ranges(self, address: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read parts of a file."""
        with Path(address).open("rb") as file:
            return [os.pread(file.fileno(), length, start) for start, length in ranges]

    def missing(self, addresses: Iterable[str]) -> list[str]:
        """Return those of some files that are not there."""
        return [address for address in addresses if _stat(address) is None]

    def names(self, folder: str) -> list[str]:
        """Name what lies in a folder."""
        try:
            return [entry.name for entry in Path(folder).iterdir()]
        except _NOT_THERE:
            return []

    def is_folder(self, address: str) -> bool:
        """Return whether there is a folder."""
        return Path(address).is_dir()

    def make_folder(self, address: str, *, parents: bool = False) -> None:
        """Make a folder if there is none."""
        Path(address).mkdir(exist_ok=True, parents=parents)

    def clear(self, folder: str) -> None:
        """Delete a file, or a link to nothing, that lies where a folder is to be."""
        path = Path(folder)
        if path.is_file() or (path.is_symlink() and not path.exists()):
            path.unlink(missing_ok=True)

    def put(self, address: str, data: bytes) -> None:
        """Put a finished file in the place of another."""
        self._unfinished(address, data, lasting=False).replace(address)

    def put_if_absent(self, address: str, data: bytes) -> Mark | None:
        """Link a finished file to its name: that fails if the name is taken.

        Raises:
            FileExistsError: It is.
        """
        finished, made = self._unfinished(address, data), Path(address)
        try:
            os.link(finished, made)
        except FileExistsError:
            if not finished.samefile(made):  # a network file system may have answered twice
                raise
        finally:
            with suppress(OSError):
                finished.unlink()
        return None

    def _unfinished(self, address: str, data: bytes, *, lasting: bool = True) -> Path:
        path = Path(address).parent / f".trickle-{uuid.uuid4()}.tmp"
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        return path

    def delete(self, *addresses: str) -> None:
        """Delete files, one after the other."""
        for address in addresses:
            Path(address).unlink(missing_ok=True)

    def sweep(self, folder: str) -> None:
        """Delete old unfinished files."""
        for path in Path(folder).glob(_UNFINISHED):
            with suppress(OSError):  # another one sweeps too
                if time() - path.stat().st_mtime > _OLD_SECONDS:
                    path.unlink()

    def fetch(self, addresses: Sequence[str]) -> None:
        """Do nothing: files are read where they are."""

    def later(self, work: Callable[[], object]) -> None:
        """Do it now: it takes no time."""
        with suppress(OSError):
            work()

    def readable(self, address: str) -> str:
        """Return the path."""
        return address

    @contextmanager
    def scannable(
        self,
        addresses: Sequence[str],
        parts: Sequence[Sequence[tuple[int, int]]] = (),  # noqa: ARG002 - they are read where they are
    ) -> Iterator[Scannable]:
        """Yield the paths."""
        yield Scannable(list(addresses))

    @contextmanager
    def writable(self, address: str) -> Iterator[Sink]:
        """Let the file be written to its path, then wait until it is on the disk."""
        sink = Sink(address)
        yield sink
        with Path(address).open("rb") as file:
            os.fsync(file.fileno())
            sink.finish(os.fstat(file.fileno()).st_size)

    def uri(self, address: str) -> str:
        """Return the path as a URI."""
        return Path(address).as_uri()

    def path(self, address: str) -> Path:
        """Return the path."""
        return Path(address)

    @contextmanager
    def lock(self, address: str) -> Iterator[None]:
        """Hold a lock file; the system frees it when the process dies."""
        with Path(address).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
