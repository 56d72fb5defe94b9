"""Files on HDFS, by the file system of Spark's JVM: also through viewfs, which mounts it and folders of this machine.

An address is the whole URI, unquoted. A commit is written beside its place, then renamed to it unless there is one: HDFS does
that in one step. Other file systems of Hadoop are not known to, so they are left to Spark.

py4j carries bytes as text, 17 MB/s. So the JVM copies them to a file on a local disk, 500 MB/s, and they are read there.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import time
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar, cast

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from trickle.errors import StorageError
from trickle.tables.storage.copies import Copies
from trickle.tables.storage.local import LocalStorage
from trickle.tables.storage.locks import ThreadLocks
from trickle.tables.storage.protocol import NOTHING_SEEN, Mark, Scannable, Sink, TooLargeError, UncertainPutError
from trickle.tables.storage.remote_file import BLOCK, TAIL, RemoteFile, is_fixed
from trickle.tables.storage.settings import hadoop_conf

if TYPE_CHECKING:
    Jvm = Any

_HDFS: Final = "org.apache.hadoop.hdfs.DistributedFileSystem"
_VIEWS: Final = "org.apache.hadoop.fs.viewfs.ViewFileSystem"
_LOCAL: Final = LocalStorage()

_AT_ONCE: Final = 8
_POOL: Final = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="trickle-hadoop")

COPIED: Final = 256 * 1024 * 1024
"""Bytes of files that are copied to be searched at once: what is larger, Spark has read before it is here."""

COPIES: Final = 4 * COPIED
"""Bytes of copies that are kept."""

_TO_THE_END: Final = 2**62
_STEPS: Final = 8
"""New commits that are asked for one by one, before the log is listed."""

_UNFINISHED: Final = ".trickle-"
_OLD_SECONDS: Final = 3600.0
_MISSING: Final = (
    "FileNotFoundException",
    "NoSuchFileException",
    "ParentNotDirectoryException",
    "InvalidPathException",
)
_NO_FOLDER: Final = "is not a directory"
_TAKEN: Final = "FileAlreadyExistsException"
_REFUSED: Final = ("AccessControlException", "AuthorizationException")

T = TypeVar("T")
R = TypeVar("R")


def open_hadoop(context: Any, root: str) -> HadoopStorage | None:
    """Open a file system by its root, ``hdfs://host:port``; None if nothing in it takes commits in one step."""
    jvm: Jvm = context._jvm
    try:
        conf = hadoop_conf(context)
        system = jvm.org.apache.hadoop.fs.Path(f"{root}/").getFileSystem(conf)
        mounts = {at: to for at, to in _mounts(system, root).items() if _is_atomic(jvm, conf, to)}
        return HadoopStorage(context, root, system, mounts) if mounts else None
    except (Py4JJavaError, PySparkException):  # Spark will say what is wrong
        return None


def _mounts(system: Jvm, root: str) -> dict[str, str]:
    """Return what is mounted, by the path it is mounted on; of what has several targets, nothing."""
    if str(system.getClass().getName()) != _VIEWS:
        return {"": root}
    points = [(str(point.getMountedOnPath()), point.getTargetFileSystemURIs()) for point in system.getMountPoints()]
    return {at.rstrip("/"): str(targets[0]) for at, targets in points if len(targets) == 1}


def _is_atomic(jvm: Jvm, conf: Jvm, target: str) -> bool:
    scheme = target.partition(":")[0]
    if scheme != "hdfs":
        return scheme == "file"
    system = jvm.org.apache.hadoop.fs.Path(f"{target.rstrip('/')}/").getFileSystem(conf)
    return str(system.getClass().getName()) == _HDFS  # and not one that somebody put in its place


class HadoopStorage:
    """A file system of the JVM, under the URI that its addresses begin with.

    Args:
        context: The Spark context.
        root: The scheme and the host: ``hdfs://host:port``.
        system: The ``org.apache.hadoop.fs.FileSystem``.
        mounts: The URIs of what is mounted, by the path it is mounted on.
        copied: How many bytes are copied at most to be searched at once.
        copies: How many bytes of copies are kept.
    """

    overwrites_late = False

    def __init__(
        self,
        context: Any,
        root: str,
        system: Jvm,
        mounts: Mapping[str, str],
        *,
        copied: int = COPIED,
        copies: int = COPIES,
    ) -> None:
        """Bind to a file system; asks nothing yet."""
        self.root = root
        self._jvm: Jvm = context._jvm
        self._gateway: Jvm = context._gateway
        self._fs = system
        self._mounts = mounts
        self._copied = copied
        self._copies = Copies(copies)
        self._context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._jvm.java.net.URI(f"{root}/"), system.getConf()
        )
        self._new_path = self._jvm.org.apache.hadoop.fs.Path  # looking a class up takes a millisecond
        self._copy = self._jvm.org.apache.commons.io.IOUtils.copyLarge
        self._file_in = self._jvm.java.io.FileInputStream
        self._file_out = self._jvm.java.io.FileOutputStream
        self._rename_options = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
        self._locks = ThreadLocks()

    def __repr__(self) -> str:
        return f"HadoopStorage({self.root!r})"

    def reaches(self, address: str) -> bool:
        """Return whether an address is on something that takes commits in one step."""
        return self._target(address) is not None

    def _target(self, address: str) -> str | None:
        """Return the URI that an address is mounted from."""
        path = address[len(self.root) :]
        for at in sorted(self._mounts, key=len, reverse=True):
            if path == at or path.startswith(f"{at}/"):
                return self._mounts[at].rstrip("/") + path[len(at) :]
        return None

    def _on_this_machine(self, address: str) -> str | None:
        """Return the path of a file that is mounted from this machine, where the JVM's rename is not one step."""
        target = self._target(address)
        if target is None or not target.startswith("file:"):
            return None
        return "/" + target.removeprefix("file:").lstrip("/")

    def _path(self, address: str) -> Jvm:
        return self._new_path(address if address != self.root else f"{address}/")

    @contextmanager
    def _named(self, address: str) -> Iterator[None]:
        """Turn the JVM's errors into ours."""
        try:
            yield
        except Py4JJavaError as error:
            raise _error(error, address) from error
        except PySparkException as error:  # a name that no file can have
            raise FileNotFoundError(address) from error

    def _at_once(self, do: Callable[[T], R], items: Sequence[T]) -> list[R]:
        return list(map(do, items)) if len(items) < 2 else list(_POOL.map(do, items))

    # -- logs

    def versions(self, log: str, known: int) -> Mapping[int, Mark]:
        """Look for the known number and the next ones; list the folder if none is known, many came, or one is missing."""
        found: dict[int, Mark] = {}
        if known >= 0 and (mark := self.mark(f"{log}/{known:020d}.json")) is not None:
            found[known], next_, end = mark, known + 1, known + _STEPS
            while next_ < end and (mark := self._mark_if_there(f"{log}/{next_:020d}.json")) is not None:
                found[next_] = mark
                next_ += 1
            if next_ < end and not self._exists(f"{log}/{next_ + 1:020d}.json"):
                return found
        numbers = (name[:20] for name in self.names(log) if len(name) == 25 and name.endswith(".json"))
        newest = max((int(number) for number in numbers if number.isdigit()), default=-1)
        if newest >= 0 and (mark := self.mark(f"{log}/{newest:020d}.json")) is not None:
            found[newest] = mark
        return found

    # -- reading

    def _exists(self, address: str) -> bool:
        with self._named(address):
            return bool(self._fs.exists(self._path(address)))

    def _status(self, address: str) -> Jvm:
        with self._named(address):
            return self._fs.getFileStatus(self._path(address))

    def mark(self, address: str) -> Mark | None:
        """Return time and size."""
        try:
            status = self._status(address)
        except FileNotFoundError:
            return None
        return int(status.getModificationTime()), int(status.getLen())

    def _mark_if_there(self, address: str) -> Mark | None:
        """Return the mark of a file that is probably not there: an error takes the JVM longer than a look."""
        return self.mark(address) if self._exists(address) else None

    def size(self, address: str) -> int:
        """Return the bytes of a file."""
        return int(self._status(address).getLen())

    def get(self, address: str) -> bytes:
        """Read a file."""
        with NamedTemporaryFile(prefix="trickle-") as local:
            self._bring(address, local.name, [(0, _TO_THE_END)])
            return local.read()

    def _bring(self, address: str, local: str, ranges: Iterable[tuple[int, int]]) -> None:
        """Copy parts of a file, one after the other, to a local one."""
        with self._named(address):
            source = self._fs.open(self._path(address))
            try:
                sink = self._file_out(local)
                try:
                    for start, length in ranges:
                        source.seek(start)
                        self._copy(source, sink, 0, length)
                finally:
                    sink.close()
            finally:
                source.close()

    def get_marked(self, address: str, seen: Mark | None = None) -> tuple[bytes, Mark | None]:  # noqa: ARG002
        """Look at a file, then read it: a write in between makes another mark."""
        mark = self.mark(address)
        return self.get(address), mark

    def get_many(
        self,
        addresses: Sequence[str],
        seen: Mapping[str, Mark] = NOTHING_SEEN,  # noqa: ARG002 - nothing is kept for the next process
    ) -> list[tuple[bytes, Mark | None] | None]:
        """Read files at once."""

        def found(address: str) -> tuple[bytes, Mark | None] | None:
            try:
                return self.get_marked(address)
            except FileNotFoundError:
                return None

        return self._at_once(found, addresses)

    def get_ranges(self, address: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read parts of a file."""
        with NamedTemporaryFile(prefix="trickle-") as local:
            self._bring(address, local.name, [part for part in ranges if part[1]])
            return [local.read(length) for _, length in ranges]

    def missing(self, addresses: Iterable[str]) -> list[str]:
        """Ask for all at once."""
        asked = list(addresses)
        there = self._at_once(self._exists, asked)
        return [address for address, is_there in zip(asked, there, strict=True) if not is_there]

    def names(self, folder: str) -> list[str]:
        """Name what lies in a folder; of a list of objects py4j would fetch each by itself."""
        try:
            with self._named(folder):
                found = self._fs.listStatus(self._path(folder))
                paths = self._jvm.org.apache.hadoop.fs.FileUtil.stat2Paths(found)
                text = str(self._jvm.scala.runtime.ScalaRunTime.stringOf(paths))
        except FileNotFoundError:
            return []
        start, _, rest = text.removesuffix(")").partition(f"{folder}/")
        return rest.split(f", {folder}/") if start == "Array(" and rest else []

    def is_folder(self, address: str) -> bool:
        """Return whether there is a folder."""
        return self._exists(address) and bool(self._status(address).isDirectory())

    def make_folder(self, address: str, *, parents: bool = False) -> None:  # noqa: ARG002 - Hadoop makes those above too
        """Make a folder if there is none."""
        with self._named(address):
            self._fs.mkdirs(self._path(address))

    def clear(self, folder: str) -> None:
        """Delete a file that lies where a folder is to be."""
        if self._exists(folder) and not self.is_folder(folder):
            self.delete(folder)

    # -- writing

    def _write(self, address: str, fill: Callable[[Jvm], object]) -> None:
        """Write a file that is not there, until it is on the disks."""
        with self._named(address):
            sink = self._fs.create(self._path(address), False)
            try:
                fill(sink)
                sink.hsync()
            finally:
                sink.close()

    def put(self, address: str, data: bytes) -> None:
        """Put a finished file in the place of another."""
        unfinished = self._unfinished(address)
        try:
            self._write(unfinished, lambda sink: sink.write(data))
            self._rename(unfinished, address, self._rename_options.OVERWRITE)
        except BaseException:
            self._forget(unfinished)
            raise

    def put_if_absent(self, address: str, data: bytes) -> Mark | None:
        """Rename a finished file to its name, unless that is taken.

        If an answer is lost, deleting the finished file tells: what is still there was not renamed, and never will be.

        Raises:
            FileExistsError: It is.
            UncertainPutError: Nobody says.
        """
        local = self._on_this_machine(address)
        if local is not None:
            return _LOCAL.put_if_absent(local, data)
        unfinished = self._unfinished(address)
        try:
            self._write(unfinished, lambda sink: sink.write(data))
        except BaseException:
            self._forget(unfinished)
            raise
        try:
            self._rename(unfinished, address)
        except OSError as error:
            try:
                with self._named(unfinished):
                    is_left = bool(self._fs.delete(self._path(unfinished), False))
                is_ours = not is_left and self.get(address) == data
            except OSError:
                raise UncertainPutError(address, str(error)) from error
            if is_left:
                raise
            if not is_ours:
                raise FileExistsError(address) from error
        return self.mark(address)

    def _unfinished(self, address: str) -> str:
        return f"{address.rpartition('/')[0]}/{_UNFINISHED}{uuid.uuid4()}.tmp"

    def _rename(self, address: str, to: str, *options: Jvm) -> None:
        given = self._gateway.new_array(self._rename_options, len(options))
        for place, option in enumerate(options):
            given[place] = option
        with self._named(to):
            self._context.rename(self._path(address), self._path(to), given)

    def _forget(self, address: str) -> None:
        with suppress(OSError):
            self.delete(address)

    def delete(self, *addresses: str) -> None:
        """Delete files, one after the other."""
        for address in addresses:
            with suppress(FileNotFoundError), self._named(address):
                self._fs.delete(self._path(address), False)

    def sweep(self, folder: str) -> None:
        """Delete old unfinished files."""
        for name in self.names(folder):
            if name.startswith(_UNFINISHED) and name.endswith(".tmp"):
                with suppress(OSError):  # another one sweeps too
                    if time() - self._status(f"{folder}/{name}").getModificationTime() / 1000 > _OLD_SECONDS:
                        self.delete(f"{folder}/{name}")

    def later(self, work: Callable[[], object]) -> None:
        """Do it meanwhile."""

        def quietly() -> None:
            with suppress(OSError):
                work()

        _POOL.submit(quietly)

    # -- Parquet

    def fetch(self, addresses: Sequence[str]) -> None:
        """Copy small files at once."""

        def fetch(address: str) -> None:
            with suppress(OSError):  # the reader will find out
                if self.size(address) <= BLOCK:
                    self._copy_of(address)

        self._at_once(fetch, [a for a in addresses if is_fixed(a) and self._copies.known(a) is None])

    def _copy_of(self, address: str) -> str:
        """Return the path of a local copy."""
        known = self._copies.known(address)
        if known is not None:
            return known
        path = self._copies.new()
        self._bring(address, path, [(0, _TO_THE_END)])
        return self._copies.keep(address, path)

    def readable(self, address: str) -> BinaryIO:
        """Return the copy of a file, if it is small or there is one; else the file, fetched as it is read."""
        known, size = self._copies.known(address), 0
        if known is None and (size := self.size(address)) <= BLOCK and is_fixed(address):
            known = self._copy_of(address)
        if known is not None:
            return cast("BinaryIO", pa.OSFile(known))

        def part(start: int, length: int) -> bytes:
            return self.get_ranges(address, [(start, length)])[0]

        tail = min(size, TAIL)
        return cast("BinaryIO", RemoteFile(size, part(size - tail, tail), part))

    @contextmanager
    def scannable(
        self,
        addresses: Sequence[str],
        parts: Sequence[Sequence[tuple[int, int]]] = (),  # noqa: ARG002 - files are copied whole
    ) -> Iterator[Scannable]:
        """Yield copies; polars knows no file system of Hadoop.

        Raises:
            TooLargeError: There is too much to copy.
        """
        new = [address for address in addresses if self._copies.known(address) is None]
        if sum(self._at_once(self.size, new)) > self._copied:
            raise TooLargeError(addresses[0])
        yield Scannable(self._at_once(self._copy_of, addresses))

    @contextmanager
    def writable(self, address: str) -> Iterator[Sink]:
        """Let a local file be written, then copy it while others are written."""
        path = self._copies.new()
        sink = Sink(path)
        yield sink
        size = Path(path).stat().st_size

        def send() -> None:
            self._write(address, partial(self._copy, self._file_in(path)))
            self._copies.keep(address, path)

        sink.finish(size, _POOL.submit(send).result)

    def uri(self, address: str) -> str:
        """Return the address as a URI."""
        return address

    def path(self, address: str) -> Path | None:  # noqa: ARG002 - no address has one
        """Return None: the bytes are elsewhere."""
        return None

    @contextmanager
    def lock(self, address: str) -> Iterator[None]:
        """Let one in at a time on this machine's disks; on HDFS one thread of this process, ``put_if_absent`` decides."""
        local = self._on_this_machine(address)
        with self._locks.held(address) if local is None else _LOCAL.lock(local):
            yield


def _error(error: Py4JJavaError, address: str) -> OSError:
    """Return the error to raise for one of the JVM's."""
    cause = error.java_exception
    name = str(cause.getClass().getSimpleName())
    if name == "RemoteException":
        name = str(cause.getClassName()).rpartition(".")[2]
    if name in _MISSING or _NO_FOLDER in str(cause.getMessage()):
        return FileNotFoundError(address)
    if name == _TAKEN:
        return FileExistsError(address)
    if name in _REFUSED:
        return StorageError(
            "STORAGE_REFUSED",
            f"Hadoop refuses access to {address} ({name}).",
            hint="Check who Spark runs as, and whether they may read, write, list and delete there.",
        )
    return StorageError(
        "STORAGE_FAILED",
        f"Hadoop's file system failed for {address} ({name}).",
        hint="Check its name nodes and the network, then refresh again.",
    )
