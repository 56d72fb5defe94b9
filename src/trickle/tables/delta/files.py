"""Which files a Delta table consists of, kept up to date from its commits, and what statistics tell of them.

Delta answers this with a Spark job over its state. Replaying the log in Python is quicker: from its beginning, or from its
newest checkpoint where it is long or no longer whole. If neither will do, Delta is asked once and its commits followed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import numpy as np

from trickle.errors import SourceError
from trickle.model.options import DEFAULT, Options
from trickle.model.reason import HISTORY_EXPIRED
from trickle.tables.arrow.types import arrow_facts
from trickle.tables.delta import LOG_FOLDER
from trickle.tables.delta.checkpoint_files import UNREADABLE, find_checkpoint
from trickle.tables.storage.schemes import Folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.log import DeltaLogFiles


_LOG: Final = logging.getLogger("trickle")


class FileList:
    """The files of a table at a version.

    Law    files(v) = files(v - 1) - removed(v) + added(v), a file being a path with its deletion vector

    Thread-safe: it changes under the log's lock.
    """

    def __init__(self, log: DeltaLogFiles, options: Options = DEFAULT) -> None:
        """Follow a log from its beginning; read nothing yet."""
        self._log = log
        self._options = options
        self._generation = -1
        self._version = -1
        self._files: dict[tuple[str, str], FileAction] = {}

    def at(self, version: int) -> list[FileAction] | None:
        """Return the files at a version that is not older than the last one asked for; None if the log cannot say."""
        with self._log.lock:
            if self._generation != self._log.generation or version < self._version:
                self._generation, self._version, self._files = self._log.generation, -1, {}
            is_fresh = self._version < 0 and version > self._options.log_steps_back
            if is_fresh and self._from_checkpoint(version) and self._replay(version):
                return list(self._files.values())
            if self._replay(version) or (self._from_checkpoint(version) and self._replay(version)):
                return list(self._files.values())
            return None

    def _replay(self, version: int) -> bool:
        """Follow the commits up to a version; false if they are too many, or not all there."""
        if version - self._version > self._options.log_replay:
            return False
        try:
            commits = self._log.commits(self._version, version)
        except SourceError as error:
            if error.code != HISTORY_EXPIRED:
                raise
            return False
        for commit in commits:
            for file in commit.removes:
                self._files.pop(file.key, None)
            for file in commit.adds:
                self._files[file.key] = file
        self._version = version
        return True

    def _from_checkpoint(self, version: int) -> bool:
        """Start from the newest checkpoint up to a version; false if there is none that can be read."""
        folder = self._log.folder
        if folder is None or not self._log.is_plain:
            return False
        try:
            found = find_checkpoint(Folder(folder.storage, folder / LOG_FOLDER), version)
            if found is None or found.version <= self._version or version - found.version > self._options.log_replay:
                return False
            files = found.adds()
        except UNREADABLE as error:
            _LOG.warning("A checkpoint of %s cannot be read, so Delta is asked: %s", folder.address, error)
            return False
        self._version, self._files = found.version, {file.key: file for file in files}
        return True

    def learn(self, version: int, files: Sequence[FileAction]) -> None:
        """Take the files at a version from Delta, if the log alone does not determine them."""
        with self._log.lock:
            self._generation, self._version = self._log.generation, version
            self._files = {file.key: file for file in files}


def near_values(files: Sequence[FileAction], column: str, values: pa.Array) -> list[FileAction]:
    """Return the files that by their statistics may have one of some values in a column; those of NULL tell nothing."""
    if not arrow_facts(values.type).is_bounded or values.null_count:
        return list(files)
    ordered = np.sort(values.to_numpy(zero_copy_only=False))
    bounds = [file.bounds.get(column) for file in files]
    ends = np.array([found or (0, 0) for found in bounds], np.int64).reshape(-1, 2)
    some = np.searchsorted(ordered, ends[:, 0], "left") < np.searchsorted(ordered, ends[:, 1], "right")
    return [file for file, found, holds in zip(files, bounds, some.tolist(), strict=True) if found is None or holds]


def domain_of(files: Iterable[FileAction], column: str) -> int | None:
    """Return how many whole numbers lie between the minimum and the maximum of a column; None if it is not known."""
    bounds = [file.bounds.get(column) for file in files]
    known = [found for found in bounds if found is not None]
    if not known or len(known) != len(bounds):
        return None
    return max(high for _, high in known) - min(low for low, _ in known) + 1
