"""The storage of a location: one row for each scheme. Spark handles a scheme without a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trickle.tables.storage.local import LocalStorage

if TYPE_CHECKING:
    from trickle.tables.storage.protocol import Storage

STORAGES: Final[Mapping[str, Storage]] = MappingProxyType(dict.fromkeys(("", "file"), LocalStorage()))
"""The storages by the schemes of their locations; one without a scheme is a path."""


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


def folder_at(location: str) -> Folder | None:
    """Return the folder at a location (a path or URI, unquoted), None if its storage is not known here.

    >>> folder_at("file:/data/orders").address, folder_at("s3a://bucket/orders")
    ('/data/orders', None)
    """
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        scheme, rest = "", location
    storage = STORAGES.get(scheme)
    if storage is None or not rest.startswith("/"):
        return None
    return Folder(storage, "/" + rest.strip("/"))
