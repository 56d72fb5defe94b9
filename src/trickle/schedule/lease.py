"""One leader among several processes: a lease that its holder renews, and that others take over when it does not.

The lease is a row of files ``00000000000000000007.json`` in a folder, each of which names the holder of one term. Whoever
puts the next number holds the next term: a storage lets one of two win (``put_if_absent``), so this is safe wherever tables
are. Nobody compares clocks: a term is over for another process when *it* has seen the same number for as long as a term
takes, by its own clock, and its holder stops sooner.

    taken over    at most one term and one look after the holder died
    two leaders   never for longer than a call to the storage takes; commits are conditional all the same
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trickle.layout import WAREHOUSE_CONF
from trickle.tables.storage.schemes import folder_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.tables.storage.schemes import Folder

_NUMBERED: Final = re.compile(r"(\d{20})\.json")
_TERMS_BACK: Final = 3
_FOLDER: Final = "_trickle_lease"
"""In a warehouse: no table's name begins so."""


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


def open_lease(spark: SparkSession, seconds: float = 15.0) -> Lease | None:
    """Return the lease of a session's warehouse; None if its storage is not known, where nobody is kept from leading."""
    place = spark.conf.get(WAREHOUSE_CONF, None) or spark.conf.get("spark.sql.warehouse.dir", None)
    folder = folder_at(f"{place}/{_FOLDER}") if place else None
    if folder is None:
        return None
    folder.storage.make_folder(folder.address, parents=True)
    return Lease(folder, seconds)
