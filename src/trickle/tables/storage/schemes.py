"""The storage of a location: one row for each scheme. Spark handles a scheme without a row."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trickle.model.options import DEFAULT
from trickle.tables.storage.disk_cache import DiskCache
from trickle.tables.storage.local import LocalStorage
from trickle.tables.storage.locks import ThreadLocks
from trickle.tables.storage.settings import current_settings, running_spark

if TYPE_CHECKING:
    from trickle.tables.storage.credentials import ClientSettings
    from trickle.tables.storage.protocol import Storage
    from trickle.tables.storage.settings import Settings

LOCAL: Final = LocalStorage()
_DISK: Final = DiskCache(DEFAULT.disk_cache_bytes)
_LOG: Final = logging.getLogger("trickle")
_UNSAFE: Final = "whether commits are safe there"
_TRIED_EVERY: Final = 60.0
"""Seconds between two tries to open what only Spark could reach."""


def _s3(root: str, authority: str, settings: Settings) -> tuple[str, ClientSettings]:
    from trickle.tables.storage.credentials import s3_settings

    return "s3", s3_settings(authority, root, settings)


def _azure(root: str, authority: str, settings: Settings) -> tuple[str, ClientSettings]:
    from trickle.tables.storage.credentials import azure_settings

    return "azure", azure_settings(root, authority, settings)


def _gcs(_: str, authority: str, settings: Settings) -> tuple[str, ClientSettings]:
    from trickle.tables.storage.credentials import gcs_settings

    return "gcs", gcs_settings(authority, settings)


OBJECT_STORES: Final[Mapping[str, Callable[[str, str, Settings], tuple[str, ClientSettings]]]] = MappingProxyType(
    {**dict.fromkeys(("s3a", "s3"), _s3), **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), _azure), "gs": _gcs}
)
"""What gives the kind and the settings of a bucket, by the scheme of its URI."""

HADOOP: Final = frozenset({"hdfs", "viewfs"})
"""Schemes of which Spark's JVM is asked, if there is one: what they mean is in its settings."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder on a storage, by its address."""

    storage: Storage
    address: str

    @property
    def parent(self) -> str:
        """The address of the folder that holds it."""
        return self.address.rpartition("/")[0]

    def __truediv__(self, name: str) -> str:
        """Return the address of a file in it."""
        return f"{self.address}/{name}"


@dataclass(frozen=True, slots=True)
class _Opened:
    """A bucket or file system that was opened for a Spark context; None where only Spark can."""

    context: object | None
    storage: Storage | None
    why: str = ""
    since: float = field(default_factory=monotonic)

    def serves(self, context: object | None) -> bool:
        """Return whether it need not be opened again: what could not be opened is tried again, for that may pass."""
        return self.context is context and (self.storage is not None or monotonic() - self.since < _TRIED_EVERY)


_opened: Final[dict[str, _Opened]] = {}
_locks: Final = ThreadLocks()
_said: Final[set[tuple[str, str]]] = set()
_said_lock: Final = Lock()


def folder_at(location: str) -> Folder | None:
    """Return the folder at a location (a path or URI, unquoted), None if its storage is not known here.

    >>> folder_at("file:/data/orders").address, folder_at("ofs://host/orders")
    ('/data/orders', None)
    """
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        scheme, rest = "", location
    if scheme in ("", "file"):
        return Folder(LOCAL, "/" + rest.strip("/")) if rest.startswith("/") else None
    authority, _, path = rest.removeprefix("//").partition("/")
    path = path.strip("/")
    if not rest.startswith("//") or not authority:
        return None
    root = f"{scheme}://{authority}"
    if scheme in HADOOP:
        return _mounted(root, f"{root}/{path}".rstrip("/"))
    if scheme not in OBJECT_STORES:
        _say(root, _unknown(scheme))
        return None
    storage = _bucket(scheme, authority, root).storage
    return None if storage is None else Folder(storage, f"{root}/{path}".rstrip("/"))


def limit_disk_cache(bytes_: int) -> None:
    """Say how much of object stores this process may keep on this machine's disk, for all their buckets."""
    _DISK.limit(bytes_)


def why_spark(location: str) -> str | None:
    """Say what of a location only Spark knows; None if the driver can reach it."""
    if folder_at(location) is not None:
        return None
    scheme, _, rest = location.partition("://")
    if scheme in OBJECT_STORES and (authority := rest.partition("/")[0]):
        return _bucket(scheme, authority, root_of(location)).why
    return _UNSAFE if scheme in HADOOP else _unknown(scheme)


def root_of(location: str) -> str:
    """Return the part of a location that one storage serves.

    >>> root_of("s3a://shop/orders")
    's3a://shop'
    """
    scheme, _, rest = location.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _mounted(root: str, address: str) -> Folder | None:
    """Return a folder on a file system of Spark's JVM, None if there is none or it cannot take commits there."""
    context = running_spark()
    if context is None:
        return None
    known = _opened.get(root)
    if known is None or not known.serves(context):
        from trickle.tables.storage.hadoop import open_hadoop

        with _locks.held(root):
            known = _opened.get(root)
            if known is None or not known.serves(context):
                known = _opened[root] = _Opened(context, open_hadoop(context, root))
        if known.storage is None:
            _say(root, _UNSAFE)
    storage: Any = known.storage
    return Folder(storage, address) if storage is not None and storage.reaches(address) else None


def _bucket(scheme: str, authority: str, root: str) -> _Opened:
    """Open a bucket once for each Spark context: the next one may have other settings."""
    context = running_spark()
    known = _opened.get(root)
    if known is not None and known.serves(context):
        return known
    from trickle.tables.storage.credentials import UnmappedError
    from trickle.tables.storage.object_store import ObjectStorage

    with _locks.held(root):  # others need not wait for what is asked of this bucket's server
        known = _opened.get(root)
        if known is None or not known.serves(context):
            try:
                kind, settings = OBJECT_STORES[scheme](root, authority, current_settings())
                known = _Opened(context, ObjectStorage(kind, root, settings, disk=_DISK))
            except UnmappedError as error:
                known = _Opened(context, None, str(error))
                _say(root, str(error))
            _opened[root] = known
    return known


def _unknown(scheme: str) -> str:
    return f"the storage {scheme}:"


def _say(root: str, what: str) -> None:
    """Log once in a process that only Spark can reach a storage."""
    with _said_lock:
        is_new = (root, what) not in _said
        _said.add((root, what))
    if is_new:
        _LOG.warning("Spark does all reading and writing of tables in %s: only it knows %s.", root, what)
