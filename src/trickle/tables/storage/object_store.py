"""Files on object stores, by obstore: S3 and servers that speak like it, Azure, Google Cloud Storage.

An address is the whole URI, unquoted. A commit is a conditional PUT. There are no folders and no locks: a prefix with nothing
in it is not there, and within a process callers wait for each other.

Files of Parquet outside logs never change once they are written, so small ones are kept in memory; others, and commits, on this
machine's disk (``lasting.py``).
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar, cast

import obstore
from obstore.exceptions import BaseError

from trickle.tables.storage import client
from trickle.tables.storage.client import Client
from trickle.tables.storage.disk_cache import BLOCK as DISK_BLOCK
from trickle.tables.storage.disk_cache import together
from trickle.tables.storage.failures import (
    is_refused_condition,
    is_uncertain,
    no_conditions,
    storage_error,
)
from trickle.tables.storage.lasting import LastingFiles, is_lasting
from trickle.tables.storage.locks import ThreadLocks
from trickle.tables.storage.protocol import LATE_COMMITS, NOTHING_SEEN, Mark, Scannable, Sink, UncertainPutError
from trickle.tables.storage.remote_file import BLOCK, TAIL, RemoteFile
from trickle.tables.storage.small_files import SmallFiles

if TYPE_CHECKING:
    from pathlib import Path

    from trickle.tables.storage.credentials import ClientSettings
    from trickle.tables.storage.disk_cache import DiskCache, Range

_AT_ONCE: Final = 16
_POOL: Final = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="trickle-storage")
_PARTS: Final = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="trickle-parts")
"""For parts of files, which threads of the other one wait for."""

CACHE_BYTES: Final = 64 * 1024 * 1024
"""Of small files, in memory."""

_OPEN_AT_ONCE: Final = 200
"""Files: a process may have no more than some hundreds open."""

_GAP: Final = 4 * DISK_BLOCK
"""Bytes that are fetched in vain rather than by another request."""

_BEFORE_HINT: Final = 200
"""Commits before the last checkpoint whose ETags one page of a list tells too."""

T = TypeVar("T")
R = TypeVar("R")


class ObjectStorage:
    """A bucket, or a container, under the URI that its addresses begin with.

    Args:
        kind: ``s3``, ``azure`` or ``gcs``.
        root: The scheme and the bucket: ``s3a://orders``.
        settings: What the client is made with.
        tail: How many bytes the first request for a file fetches.
        block: How many a later one fetches at least.
        cache: How many bytes of small files are kept.
        disk: Where more is kept, None if nowhere.
    """

    def __init__(
        self,
        kind: str,
        root: str,
        settings: ClientSettings,
        *,
        tail: int = TAIL,
        block: int = BLOCK,
        cache: int = CACHE_BYTES,
        disk: DiskCache | None = None,
    ) -> None:
        """Make a client; asks nothing yet."""
        self.root = root
        self._tail, self._block = tail, block
        self._client = Client(kind, root, settings)
        self._lasting = LastingFiles(disk, self._server)
        self._has_suffixes = kind != "azure"
        self.overwrites_late = kind == "s3"
        self._is_checked = not settings.is_custom
        self._small = SmallFiles(cache)
        self._locks = ThreadLocks()

    def __repr__(self) -> str:
        return f"ObjectStorage({self.root!r})"

    def _server(self) -> list[object]:
        return [self._client.settings.config.get(name) for name in ("endpoint", "account_name", "base_url")]

    def _at_once(self, do: Callable[[T], R], items: Sequence[T]) -> list[R]:
        return list(map(do, items)) if len(items) < 2 else list(_POOL.map(do, items))

    # -- logs

    def versions(self, log: str, known: int) -> Mapping[int, Mark]:
        """List from some commits before the known one on: one request tells that they are the same, and which came since."""
        if known >= 0:
            return self._listed(log, max(known - LATE_COMMITS, 0))
        return self._listed(log, max(self._hinted(log) - _BEFORE_HINT, -1)) or self._listed(log, -1)

    def _listed(self, log: str, since: int) -> dict[int, Mark]:
        offset = None if since < 0 else f"{self._client.path(log)}/{since:020d}"
        return self._client.tried(
            log, lambda: dict(_commits(obstore.list(self._client.store, self._client.path(log), offset=offset)))
        )

    def _hinted(self, log: str) -> int:
        """Return a version to list from, by the hint to the last checkpoint: a long log has many pages."""
        try:
            text = self.get(f"{log}/_last_checkpoint").decode()
        except (FileNotFoundError, ValueError):
            return -1
        digits = text.partition('"version":')[2].lstrip().partition(",")[0].strip(" }\n")
        return int(digits) if digits.isdigit() else -1

    # -- reading

    def mark(self, address: str) -> Mark | None:
        """Return the ETag."""
        try:
            return _tag(self._head(address))
        except FileNotFoundError:
            return None

    def _head(self, address: str) -> Any:
        with self._client.named(address):
            return obstore.head(self._client.store, self._client.path(address))

    def size(self, address: str) -> int:
        """Return the bytes of a file."""
        return int(self._head(address)["size"])

    def get(self, address: str) -> bytes:
        """Read a file."""
        return self.get_marked(address)[0]

    def get_marked(self, address: str, seen: Mark | None = None) -> tuple[bytes, Mark | None]:
        """Read a file; the answer has the ETag of what it holds."""
        if seen is not None:
            with self._lasting.opened(address, seen) as kept:
                data = None if kept is None else kept.read(0, kept.size)
            if data is not None:
                return data, seen
        data, mark = self._client.tried(address, lambda: self._get(address))
        self._lasting.keep_commit(address, data, mark)
        return data, mark

    def _get(self, address: str) -> tuple[bytes, Mark | None]:
        answer = obstore.get(self._client.store, self._client.path(address))
        return bytes(answer.bytes()), _tag(answer.meta)

    def get_many(
        self, addresses: Sequence[str], seen: Mapping[str, Mark] = NOTHING_SEEN
    ) -> list[tuple[bytes, Mark | None] | None]:
        """Read files at once."""

        def found(address: str) -> tuple[bytes, Mark | None] | None:
            try:
                return self.get_marked(address, seen.get(address))
            except FileNotFoundError:
                return None

        return self._at_once(found, addresses)

    def get_ranges(self, address: str, ranges: Sequence[Range]) -> list[bytes]:
        """Read parts of a file at once; those that lie close together by one request."""
        if is_lasting(address) and self._lasting.has_room([(0, 1)]):
            with self._lasting.opened(address) as kept:
                size = None if kept is None else kept.size
            if size is None:
                size, _, _ = self._end(address)
            return self._ranges(address, size, ranges)
        return self._ranges(address, 0, ranges)

    def _ranges(self, address: str, size: int, ranges: Sequence[Range], mark: Mark | None = None) -> list[bytes]:
        """Read parts of a file, from this machine's disk if it may be kept there."""
        for is_filled in (False, True) if size else ():
            with self._lasting.opened(address, mark, size) as kept:
                found = [None if kept is None else kept.read(*range_) for range_ in ranges]
                if None not in found:
                    return cast("list[bytes]", found)
                if kept is None or is_filled or not self._lasting.has_room(ranges):
                    break
                lacking = kept.lacking(ranges)
            self._fill([(address, size, lacking)], mark)
        starts, lengths = [start for start, _ in ranges], [length for _, length in ranges]
        asked = [place for place, length in enumerate(lengths) if length]
        if not asked:
            return [b"" for _ in ranges]
        starts, lengths = [starts[place] for place in asked], [lengths[place] for place in asked]
        path = self._client.path(address)
        parts = self._client.tried(
            address, lambda: obstore.get_ranges(self._client.store, path, starts=starts, lengths=lengths)
        )
        read = dict(zip(asked, map(bytes, parts), strict=True))
        return [read.get(place, b"") for place in range(len(ranges))]

    def _fill(self, lacking: Iterable[tuple[str, int, Iterable[Range]]], mark: Mark | None = None) -> None:
        """Fetch parts of files of given sizes for the disk, all at once; only of that of the mark, if any."""

        def fetch(part: tuple[str, int, int, int]) -> None:
            address, size, start, length = part
            data, tag = self._client.tried(address, lambda: self._part(address, start, length))
            if mark in (None, tag):
                self._lasting.keep(address, size, start, data, mark)

        parts = [
            (address, size, *part) for address, size, runs in lacking for part in together(runs, _GAP, self._block)
        ]
        list(_PARTS.map(fetch, parts) if len(parts) > 1 else map(fetch, parts))

    def missing(self, addresses: Iterable[str]) -> list[str]:
        """Ask for all at once, but not for those that were there just now."""
        asked = [address for address in addresses if not self._small.was_there(address)]
        marks = self._at_once(self.mark, asked)
        return [address for address, mark in zip(asked, marks, strict=True) if mark is None]

    def fetch(self, addresses: Sequence[str]) -> None:
        """Fetch the ends of files, which for small ones are the whole."""

        def fetch(address: str) -> None:
            with suppress(OSError):  # the reader will find out
                self._end(address)

        self._at_once(fetch, [address for address in addresses if self._small.get(address) is None])

    def later(self, work: Callable[[], object]) -> None:
        """Do it meanwhile."""

        def quietly() -> None:
            with suppress(OSError):
                work()

        _POOL.submit(quietly)

    def names(self, folder: str) -> list[str]:
        """List the files and the prefixes; the marker of a folder is not in it."""
        found = self._client.tried(
            folder, lambda: obstore.list_with_delimiter(self._client.store, prefix=self._client.path(folder))
        )
        paths = [*found["common_prefixes"], *(item["path"] for item in found["objects"])]
        prefix = f"{self._client.path(folder)}/".lstrip("/")
        return [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]

    def is_folder(self, address: str) -> bool:
        """Return whether a file lies under the prefix."""
        with self._client.named(address):
            return (
                next(iter(obstore.list(self._client.store, prefix=self._client.path(address), chunk_size=1)), None)
                is not None
            )

    def make_folder(self, address: str, *, parents: bool = False) -> None:
        """Do nothing: there are no folders."""

    def clear(self, folder: str) -> None:
        """Do nothing: a file of a folder's name is not in its way."""

    # -- writing

    def put(self, address: str, data: bytes) -> None:
        """Write a file."""
        with self._client.named(address, puts=True):
            obstore.put(self._client.store, self._client.path(address), data)

    def put_if_absent(self, address: str, data: bytes) -> Mark | None:
        """Write a file under the condition that there is none.

        Whatever the answer, one that has these bytes is ours: an answer was lost, and the client tried again.
        """
        self._check_conditions(address)
        until = monotonic() + client.PATIENCE
        for _ in range(client.TRIES):
            try:
                made = obstore.put(
                    self._client.store, self._client.path(address), data, mode="create", use_multipart=False
                )
                self._lasting.keep_commit(address, data, _tag(made))
                return _tag(made)
            except (BaseError, FileNotFoundError) as error:
                refused = storage_error(error, address, puts=True) or OSError(type(error).__name__)
                is_taken, is_lost = is_refused_condition(error), is_uncertain(error)
            if not is_taken and not is_lost:
                raise refused
            try:
                there = self._there(address)
            except OSError:
                raise UncertainPutError(address, str(refused)) from refused
            if there == data:
                return None
            if there is not None:
                raise FileExistsError(address) from refused
            # It did not arrive yet, or somebody else was writing it, and did not.
            if monotonic() > until:
                break
        if is_lost:
            raise UncertainPutError(address, str(refused)) from refused
        raise refused

    def _there(self, address: str) -> bytes | None:
        try:
            return self.get(address)
        except FileNotFoundError:
            return None

    def _check_conditions(self, address: str) -> None:
        """See once whether a server of one's own knows conditions: one that does not would overwrite a commit.

        Raises:
            StorageError: ``NO_CONDITIONAL_PUT``.
        """
        if self._is_checked:
            return
        probe = f"{address.rpartition('/')[0]}/.trickle-{uuid.uuid4()}.tmp"
        with self._client.named(address, puts=True):
            try:
                for _ in range(2):
                    obstore.put(self._client.store, self._client.path(probe), b"", mode="create", use_multipart=False)
            except BaseError as error:
                if not is_refused_condition(error):
                    raise
                self._is_checked = True
        self.delete(probe)
        if not self._is_checked:
            raise no_conditions(address)

    def delete(self, *addresses: str) -> None:
        """Delete files, as many with one request as the store can."""
        paths = list(map(self._client.path, addresses))
        if not paths:
            return
        with self._client.named(addresses[0]):
            try:
                obstore.delete(self._client.store, paths if len(paths) > 1 else paths[0])
            except FileNotFoundError:  # stores that delete one by one stop there
                for path in paths if len(paths) > 1 else ():
                    with suppress(FileNotFoundError):
                        obstore.delete(self._client.store, path)

    def sweep(self, folder: str) -> None:
        """Do nothing: there are no unfinished files."""

    # -- Parquet

    def readable(self, address: str) -> BinaryIO:
        """Return the file, fetched as it is read; at once if it is small."""
        kept = self._small.get(address)
        if kept is not None:
            return io.BytesIO(kept)
        size, tail, mark = self._end(address)
        if len(tail) == size:
            return io.BytesIO(tail)

        def part(start: int, length: int) -> bytes:
            return self._ranges(address, size, [(start, length)], mark)[0]

        return cast("BinaryIO", RemoteFile(size, tail, part, self._block))

    def _end(self, address: str) -> tuple[int, bytes, Mark | None]:
        """Return the size of a file, its end, and what it is to be known by besides its name; keep it if it is small."""
        with self._lasting.opened(address) as kept:
            if kept is not None:
                start = -(-max(kept.size - self._tail, 0) // DISK_BLOCK) * DISK_BLOCK
                tail = kept.read(start, kept.size - start) if start < kept.size else None
                if tail is not None:
                    if not start:
                        self._small.keep(address, tail, was_asked=False)
                    return kept.size, tail, None
        size, tail, mark = self._client.tried(address, lambda: self._fetched_end(address))
        if len(tail) == size:
            self._small.keep(address, tail)
        mark = None if is_lasting(address) else mark
        if is_lasting(address) or (mark is not None and len(tail) < size):
            self._lasting.keep(address, size, size - len(tail), tail, mark)
        return size, tail, mark

    def _part(self, address: str, start: int, length: int) -> tuple[bytes, Mark | None]:
        answer = obstore.get(self._client.store, self._client.path(address), options={"range": (start, start + length)})
        return bytes(answer.bytes()), _tag(answer.meta)

    def _fetched_end(self, address: str) -> tuple[int, bytes, Mark | None]:
        path = self._client.path(address)
        if self._has_suffixes:
            answer = obstore.get(self._client.store, path, options={"range": {"suffix": self._tail}})
        else:
            size = int(obstore.head(self._client.store, path)["size"])
            answer = obstore.get(self._client.store, path, options={"range": (max(size - self._tail, 0), size)})
        return int(answer.meta["size"]), bytes(answer.bytes()), _tag(answer.meta)

    @contextmanager
    def scannable(self, addresses: Sequence[str], parts: Sequence[Sequence[Range]] = ()) -> Iterator[Scannable]:
        """Return the files that are kept, in memory or on this machine's disk; else URIs, with what polars needs for them."""
        held = [self._small.get(address) for address in addresses]
        if None not in held:
            yield Scannable([io.BytesIO(data) for data in held if data is not None])
            return
        with ExitStack() as opened:
            files = self._filled(addresses, parts, opened)
            yield self._scanned_there(addresses) if files is None else Scannable(files)

    def _filled(
        self, addresses: Sequence[str], parts: Sequence[Sequence[Range]], opened: ExitStack
    ) -> list[BinaryIO] | None:
        """Return files on this machine's disk that have some parts; None if they cannot be there."""
        if not parts or len(addresses) > _OPEN_AT_ONCE or not all(map(is_lasting, addresses)):
            return None
        if not self._lasting.has_room(range_ for some in parts for range_ in some):
            return None
        files: dict[str, BinaryIO] = {}
        for is_filled in (False, True):
            lacking = []
            for address, some in zip(addresses, parts, strict=True):
                if address in files:
                    continue
                with self._lasting.opened(address) as kept:
                    size = self._end(address)[0] if kept is None else kept.size
                    left = some if kept is None else kept.lacking(some)
                    if kept is not None and not left:
                        files[address] = opened.enter_context(kept.file())
                    else:
                        lacking.append((address, size, left))
            if not lacking:
                return [files[address] for address in addresses]
            if not is_filled:
                self._fill(lacking)
        return None

    def _scanned_there(self, addresses: Sequence[str]) -> Scannable:
        return Scannable(list(addresses), {"storage_options": self._client.options()})

    @contextmanager
    def writable(self, address: str) -> Iterator[Sink]:
        """Collect the file, then put it while others are written."""
        buffer = io.BytesIO()
        sink = Sink(buffer)
        yield sink
        data = buffer.getvalue()
        sink.finish(len(data), _POOL.submit(self.put, address, data).result)
        if self._lasting and is_lasting(address):
            _POOL.submit(self._lasting.keep, address, len(data), 0, data)
        if len(data) <= self._tail:
            self._small.keep(address, data)

    def uri(self, address: str) -> str:
        """Return the address as a URI."""
        return address

    def path(self, address: str) -> Path | None:  # noqa: ARG002 - no address has one
        """Return None: the bytes are elsewhere."""
        return None

    @contextmanager
    def lock(self, address: str) -> Iterator[None]:
        """Let one thread of this process at a time in; of two processes ``put_if_absent`` decides."""
        with self._locks.held(address):
            yield


def _tag(meta: Any) -> str | None:
    """Return an ETag; Azure quotes it in answers about a file, and not in lists."""
    tag = meta["e_tag"]
    return None if tag is None else str(tag).removeprefix("W/").strip('"')


def _commits(pages: Iterable[Sequence[Any]]) -> Iterator[tuple[int, Mark]]:
    for item in (item for page in pages for item in page):
        name = item["path"].rpartition("/")[2]
        if len(name) == 25 and name.endswith(".json") and name[:20].isdigit():
            yield int(name[:20]), _tag(item)
