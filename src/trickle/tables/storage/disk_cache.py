"""Bytes of files that never change, kept on a disk of this machine, so that a new process need not fetch them again.

A file is kept under a key as two: one of its size, with holes where nothing was fetched, and beside it the digests of its
blocks. A block counts only if its digest does, so nothing has to be written in one step: whatever a crash, another process or
a bad disk leaves is fetched again. All processes of a user share the folder. Nothing here is needed: what fails is logged once,
and the store is asked.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from struct import Struct
from threading import Lock
from time import time
from typing import BinaryIO, Final

from trickle.model.cache import CacheSize, register

PLACE: Final = "TRICKLE_CACHE"
"""The environment variable that names the folder; empty, it says that there is none."""

Range = tuple[int, int]
"""The first byte, and how many."""

BLOCK: Final = 256 * 1024
_SUM: Final = 16
_HEAD: Final = Struct(">8sQ")
_MAGIC: Final = b"trickle1"
_FIRST: Final = _HEAD.size + _SUM
_SUMS: Final = ".sums"
_CHARGED: Final = 64 * 1024
"""Bytes that a file counts at least, so that there are not too many."""

_TOUCHED_EVERY: Final = 600.0
"""Seconds: how exact it is kept when a file was used last."""

_LOG: Final = logging.getLogger("trickle")


def cache_folder() -> Path:
    """Return the folder: what the environment says, else one in the user's folder of caches."""
    named = os.environ.get(PLACE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spark-trickle" / "files"


class Kept:
    """A file as far as it is kept; it is open until it is closed.

    Attributes:
        size: The bytes of the whole file.
    """

    def __init__(self, key: str, size: int, data: int, sums: int) -> None:
        """Take two open files."""
        self._key, self.size = key, size
        self._data, self._sums = data, sums
        whole = _SUM * _blocks(size)
        self._known = bytearray(os.pread(sums, whole, _FIRST).ljust(whole, b"\0"))
        self.is_damaged = False

    def file(self) -> BinaryIO:
        """Open it once more, for a reader that takes files."""
        return os.fdopen(os.dup(self._data), "rb")

    def read(self, start: int, length: int) -> bytes | None:
        """Return a part, None if it is not there whole."""
        if not length:
            return b""
        first, last = start // BLOCK, _blocks(start + length)
        blocks = list(self._checked(first, last))
        if None in blocks:
            return None
        return b"".join(block for block in blocks if block)[start - first * BLOCK :][:length]

    def lacking(self, ranges: Iterable[Range]) -> list[Range]:
        """Return what is to be fetched for some parts: blocks, those that follow each other together."""
        wanted = {n for start, length in ranges if length for n in range(start // BLOCK, _blocks(start + length))}
        runs: list[list[int]] = []
        for number in sorted(wanted):
            if next(self._checked(number, number + 1)) is not None:
                continue
            if runs and runs[-1][1] == number:
                runs[-1][1] = number + 1
            else:
                runs.append([number, number + 1])
        return [(first * BLOCK, min(last * BLOCK, self.size) - first * BLOCK) for first, last in runs]

    def put(self, start: int, data: bytes) -> None:
        """Keep the whole blocks of a part."""
        first, end = _blocks(start), start + len(data)
        last = _blocks(end) if end == self.size else end // BLOCK
        if last <= first:
            return
        view = memoryview(data)[first * BLOCK - start : last * BLOCK - start]
        sums = b"".join(_sum(self._key, n, view[(n - first) * BLOCK :][:BLOCK]) for n in range(first, last))
        _write(self._data, view, first * BLOCK)
        _write(self._sums, memoryview(sums), _FIRST + first * _SUM)
        self._known[first * _SUM : last * _SUM] = sums

    def _checked(self, first: int, last: int) -> Iterator[bytes | None]:
        """Return blocks, None for each that is not what it was."""
        for number in range(first, last):
            known = self._known[number * _SUM :][:_SUM]
            if not any(known):
                yield None
                continue
            block = b""
            with suppress(OSError):  # a bad disk
                block = os.pread(self._data, min(BLOCK, self.size - number * BLOCK), number * BLOCK)
            is_right = _sum(self._key, number, block) == known
            self.is_damaged |= not is_right
            yield block if is_right else None


@dataclass(eq=False)
class DiskCache:
    """The files kept in a folder, up to a number of bytes: those that were not used for longest go first.

    Attributes:
        max_bytes: How many; 0 keeps nothing, and reads nothing. It takes no more than a quarter of what the disk has.
        folder: Where; None is where the user's caches are.
    """

    max_bytes: int
    folder: Path | None = None
    name: str = "files on disk"
    _unswept: float = float("inf")
    _said: set[str] = field(default_factory=set)
    _is_broken: bool = False
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        """Have its size told."""
        register(self)

    def limit(self, max_bytes: int) -> None:
        """Keep no more than so many bytes from now on."""
        self.max_bytes = max_bytes

    def size(self) -> CacheSize:
        """Return how much there is, of all processes."""
        entries: Sequence[_Entry] = ()
        with suppress(OSError, RuntimeError):
            entries = list(_entries(self._place())) if self._most else ()
        return CacheSize(1, len(entries), sum(entry.bytes for entry in entries), 0, self._most)

    def has_room(self, bytes_: int) -> bool:
        """Return whether so much at once is worth keeping: it would not push most of the others out."""
        return bytes_ <= self._most // 4 and not self._is_broken

    @property
    def _most(self) -> int:
        return 0 if self.folder is None and os.environ.get(PLACE) == "" else self.max_bytes

    @contextmanager
    def opened(self, key: str, size: int | None = None) -> Iterator[Kept | None]:
        """Open what is kept under a key; begin it if the size of the file is given; None if neither is possible."""
        with ExitStack() as closing:
            kept = None
            if self._most:
                with self._failing(writes=size is not None):
                    kept = self._open(closing, key, None if self._is_broken else size)
            yield kept
            if kept is not None and kept.is_damaged:
                # It may also be that another process deleted the file and began it again in this moment.
                self._say(logging.INFO, "Parts of files in %s are not what they were: they are fetched.", self._place())

    def keep(self, key: str, size: int, start: int, data: bytes) -> None:
        """Keep a part of a file."""
        if not size or not self.has_room(len(data)):
            return
        with self.opened(key, size) as kept:
            if kept is not None:
                with self._failing(writes=True):
                    self._make_room(len(data))
                    kept.put(start, data)

    def _open(self, closing: ExitStack, key: str, size: int | None) -> Kept | None:
        place = self._place()
        if size is not None:
            _make(place)
        path, flags = str(place / key), os.O_RDWR | (0 if size is None else os.O_CREAT) | os.O_CLOEXEC | os.O_NOFOLLOW
        for _ in range(2):
            try:
                sums = os.open(path + _SUMS, flags, 0o600)
                closing.callback(os.close, sums)
                data = os.open(path, flags, 0o600)
                closing.callback(os.close, data)
            except FileNotFoundError:
                return None
            known, about, there = _size(key, os.pread(sums, _FIRST, 0)), os.fstat(sums), os.fstat(data)
            if {about.st_uid, there.st_uid} != {os.getuid()}:
                return None
            if known is not None and known == there.st_size and size in (None, known):
                if time() - about.st_mtime > _TOUCHED_EVERY:
                    os.utime(sums)
                return Kept(key, known, data, sums)
            if size is None:
                return None
            if there.st_size in (0, size) and known in (None, size):
                os.ftruncate(data, size)
                _write(sums, memoryview(_head(key, size)), 0)
                return Kept(key, size, data, sums)
            _remove(path)  # a reader may have it open: it is not cut off
        return None

    def _place(self) -> Path:
        return cache_folder() if self.folder is None else self.folder

    @contextmanager
    def _failing(self, *, writes: bool) -> Iterator[None]:
        """Let a disk fail; one that cannot be written to is not tried again."""
        try:
            yield
        except FileNotFoundError:
            return  # somebody deleted the folder just now
        except (OSError, RuntimeError) as error:
            self._is_broken |= writes
            self._say(logging.WARNING, "Files of object stores are not kept on this machine's disk: %s", error)

    def _say(self, level: int, text: str, what: object) -> None:
        """Log something once."""
        if text not in self._said:
            self._said.add(text)
            _LOG.log(level, text, what)

    def _make_room(self, bytes_: int) -> None:
        """Delete what was not used for longest, each time when a part of the room has been filled by this process."""
        with self._lock:
            self._unswept += max(bytes_, _CHARGED)
            if self._unswept <= self.max_bytes // 16:
                return
            self._unswept = 0.0
            entries = sorted(_entries(self._place()), key=lambda entry: entry.used)
            total = sum(entry.bytes for entry in entries)
            most = min(self.max_bytes, (total + shutil.disk_usage(self._place()).free) // 4)
            if total + self.max_bytes // 16 <= most:
                return
            for entry in entries:
                if total <= most - most // 8:
                    break
                _remove(entry.path)
                total -= entry.bytes


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file that is kept, when it was used, and what it takes on the disk."""

    path: str
    used: float
    bytes: int


def _entries(folder: Path) -> Iterator[_Entry]:
    found: dict[str, list[os.stat_result]] = {}
    with suppress(FileNotFoundError), os.scandir(folder) as items:
        for item in items:
            with suppress(FileNotFoundError):  # another process deleted it
                about = item.stat(follow_symlinks=False)
                found.setdefault(item.path.removesuffix(_SUMS), []).append(about)
    for path, stats in found.items():
        taken = sum(one.st_blocks * 512 for one in stats)
        yield _Entry(path, max(one.st_mtime for one in stats), max(taken, _CHARGED))


def _remove(path: str) -> None:
    for name in (path + _SUMS, path):
        with suppress(FileNotFoundError):
            os.unlink(name)  # noqa: PTH108 - thousands at once


def _make(folder: Path) -> None:
    """Make the folder, for nobody else to see into: rows of tables lie in it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid():
        message = "it belongs to another user"
        raise PermissionError(message)
    if stat.S_IMODE(found.st_mode) & 0o077:
        folder.chmod(0o700)


def _head(key: str, size: int) -> bytes:
    head = _HEAD.pack(_MAGIC, size)
    return head + _sum(key, -1, head)


def _size(key: str, head: bytes) -> int | None:
    """Return the size of the file that the head of its digests tells, None if that is not whole."""
    if len(head) < _FIRST or head != _head(key, size := _HEAD.unpack_from(head)[1]):
        return None
    return int(size)


def _sum(key: str, number: int, data: bytes | memoryview) -> bytes:
    made = blake2b(f"{key} {number} ".encode(), digest_size=_SUM)
    made.update(data)
    return made.digest()


def _blocks(size: int) -> int:
    return -(-size // BLOCK)


def _write(file: int, data: memoryview, at: int) -> None:
    """Write all of it: a disk that is full takes a part."""
    while data:
        done = os.pwrite(file, data, at)
        data, at = data[done:], at + done


def together(runs: Iterable[Range], gap: int, most: int) -> list[Range]:
    """Return what is fetched by one request each: parts that lie close together, and no more than so many bytes.

    >>> together([(0, 10), (12, 10), (100, 10)], 5, 15)
    [(0, 15), (15, 7), (100, 10)]
    """
    joined: list[list[int]] = []
    for start, length in sorted(runs):
        if joined and start - joined[-1][1] <= gap:
            joined[-1][1] = max(joined[-1][1], start + length)
        else:
            joined.append([start, start + length])
    return list(chain.from_iterable(_cut(start, end, most) for start, end in joined))


def _cut(start: int, end: int, most: int) -> Iterator[Range]:
    for at in range(start, end, most):
        yield at, min(most, end - at)
