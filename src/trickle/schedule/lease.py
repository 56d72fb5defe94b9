"""One leader among several processes: a lease that its holder renews, and that others take over when it does not.

The lease is a row of files ``00000000000000000007.json`` in a folder, each of which names the holder of one term. Whoever
puts the next number holds the next term: a storage lets one of two win (``put_if_absent``), so this is safe wherever tables
are. Nobody compares clocks: a term is over for another process when *it* has seen the same number for as long as a term
takes, by its own clock, and its holder stops sooner.

    taken over    at most one term and one look after the holder died
    two leaders   never for longer than a call to the storage takes; commits are conditional all the same
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trickle.errors import DefinitionError, StorageError
from trickle.layout import WAREHOUSE_CONF, is_remote
from trickle.tables.storage.schemes import folder_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.tables.storage.schemes import Folder

_NUMBERED: Final = re.compile(r"(\d{20})\.json")
_TERMS_BACK: Final = 3
_FOLDER: Final = "_trickle_lease"
"""In a warehouse: no table's name begins so."""

_SPARK_WAREHOUSE: Final = "spark.sql.warehouse.dir"
"""A folder of the working directory, where nobody has set it."""

_CATALOG: Final = "spark.sql.catalogImplementation"
_ALONE: Final = "nobody is kept from leading beside this process; give run() a lease, a folder that all processes share"
_LOG: Final = logging.getLogger("trickle")


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease, in words for people and an id for us."""

    id: str
    host: str
    process: int

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"


def this_process() -> Holder:
    """Return a holder that no other process, and no other loop of this one, shares."""
    return Holder(uuid.uuid4().hex, socket.gethostname(), os.getpid())


class Lease:
    """A lease in a folder, as one process sees it.

    Args:
        folder: Where its terms are.
        seconds: How long a term takes; renew at least three times as often.
        clock: Seconds that never go back.
    """

    def __init__(
        self, folder: Folder, seconds: float, holder: Holder | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take nothing yet."""
        self.folder = folder
        self.seconds = seconds
        self.me = holder or this_process()
        self._clock = clock
        self._term: int | None = None
        self._until = 0.0
        self._seen: tuple[int, float] | None = None

    @property
    def is_held(self) -> bool:
        """True while this process leads, with a margin before others may think otherwise."""
        return self._term is not None and self._clock() < self._until

    def take(self) -> bool:
        """Renew the lease, or take it if it is free or its holder has not renewed it for a term."""
        now = self._clock()
        if self._term is not None:
            if now < self._until and self._put(self._term + 1, now):
                return True
            self._term = None  # too late, or another process has taken it
        newest = self._newest()
        if newest < 0 or self._is_released(newest):
            return self._put(newest + 1, now)
        if self._seen is None or self._seen[0] != newest:
            self._seen = newest, now
            return False
        return now - self._seen[1] >= self.seconds and self._put(newest + 1, now)

    def release(self) -> None:
        """Let the next one take it at once."""
        if self._term is not None and self.is_held:
            self._try_put(self._term + 1, None)
        self._term = None

    def holder(self) -> Holder | None:
        """Return who took the newest term; None if nobody did, or it was released."""
        newest = self._newest()
        return None if newest < 0 else self._read(newest)

    def _put(self, term: int, began: float) -> bool:
        if not self._try_put(term, self.me):
            self._term = None
            self._seen = None
            return False
        self._term, self._until = term, began + self.seconds * 2 / 3
        self.folder.storage.delete(self._address(term - _TERMS_BACK))
        return True

    def _try_put(self, term: int, holder: Holder | None) -> bool:
        body = {} if holder is None else {"id": holder.id, "host": holder.host, "process": holder.process}
        try:
            self.folder.storage.put_if_absent(self._address(term), json.dumps(body).encode())
        except FileExistsError:
            found = self._read(term)
            return holder is not None and found is not None and found.id == holder.id  # an answer was lost
        return True

    def _newest(self) -> int:
        numbers = (_NUMBERED.fullmatch(name) for name in self.folder.storage.names(self.folder.address))
        return max((int(found[1]) for found in numbers if found), default=-1)

    def _is_released(self, term: int) -> bool:
        return self._read(term) is None

    def _read(self, term: int) -> Holder | None:
        try:
            body = json.loads(self.folder.storage.get(self._address(term)))
            return Holder(str(body["id"]), str(body["host"]), int(body["process"])) if body else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def _address(self, term: int) -> str:
        return str(self.folder / f"{term:020d}.json")


def open_lease(spark: SparkSession, place: str | None = None, seconds: float = 15.0) -> Lease | None:
    """Return the lease in a folder, by default in the session's warehouse; None if nobody is kept from leading.

    Raises:
        DefinitionError: ``BAD_OPTION``, the storage of the folder that was asked for is not known.
    """
    folder = _asked(place) if place is not None else _in_warehouse(spark)
    if folder is None:
        return None
    try:
        folder.storage.make_folder(folder.address, parents=True)
    except OSError as error:
        if place is not None or not _is_refused(error):
            raise
        _LOG.warning("%s takes no lease (%s): %s", folder.address, error, _ALONE)
        return None
    return Lease(folder, seconds)


def _asked(place: str) -> Folder:
    folder = folder_at(place)
    if folder is None:
        text = f"lease is an absolute path or the URI of a folder on storage that Trickle knows, not {place!r}."
        raise DefinitionError("BAD_OPTION", text, hint='For instance lease="s3a://bucket/leases/shop".')
    return folder


def _in_warehouse(spark: SparkSession) -> Folder | None:
    own = spark.conf.get(WAREHOUSE_CONF, None)
    place = own or spark.conf.get(_SPARK_WAREHOUSE, None)
    folder = folder_at(f"{place}/{_FOLDER}") if place else None
    if folder is None:
        _LOG.warning("the storage of the warehouse %s is not known: %s", place, _ALONE)
    elif own is None and not is_remote(str(place)) and spark.conf.get(_CATALOG, None) == "hive":
        text = "processes on this catalog that have another %s than %s may lead beside this one: give run() a lease, "
        _LOG.warning(f"{text}a folder that all of them share", _SPARK_WAREHOUSE, place)
    return folder


def _is_refused(error: OSError) -> bool:
    """Return whether nothing can be written there, now or later."""
    if isinstance(error, StorageError):
        return error.code == "STORAGE_REFUSED"
    return error.errno in (errno.EROFS, errno.EACCES, errno.EPERM)
