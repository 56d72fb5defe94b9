"""The next version of a table, made in the driver, whoever wrote the files it names.

A version is a file that is put if it is not there yet: of two writers one wins, and no reader ever sees half a commit. A crash
before that leaves only files that no version names.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trickle.tables.contract import record_text
from trickle.tables.delta.checkpoints import CHECKPOINTS
from trickle.tables.delta.commit import commit_lock, conflict, sweep
from trickle.tables.delta.driver.fit import NeedsSparkError, is_committable, is_stamped
from trickle.tables.delta.driver.lines import checksum_text, commit_lines
from trickle.tables.delta.driver.write import now_ms
from trickle.tables.delta.log import commit_file
from trickle.tables.storage.protocol import UncertainPutError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trickle.tables.contract import Record, TargetState
    from trickle.tables.delta.driver.write import Action
    from trickle.tables.delta.target import DeltaTarget


class DriverLog:
    """A table's log at its newest version, to which the driver may add the next.

    Attributes:
        read: The version.
        may_be_committed: True once a commit was tried that did not surely fail: the files it names must stay.
    """

    def __init__(self, target: DeltaTarget, expected: TargetState) -> None:
        """Look at the table.

        Raises:
            ConflictError: Another refresh came first.
            NeedsSparkError: The table is not one for commits by the driver.
        """
        self.target = target
        self.expected = expected
        self.read = target.check(expected)
        folder, log = target.table.folder, target.log
        if folder is None or not log.is_plain:
            raise NeedsSparkError
        self.folder = folder
        self.metadata = log.metadata(self.read)
        self.protocol = log.protocol(self.read)
        if not is_committable(self.protocol, self.metadata):
            raise NeedsSparkError
        self._stamped = self._last_stamp() if is_stamped(self.metadata) else None
        self.may_be_committed = False

    def _last_stamp(self) -> int:
        """Return the time that the newest commit says it was made at, in milliseconds.

        Raises:
            NeedsSparkError: It does not say.
        """
        commit = self.target.log.commit(self.read)
        stamp = None if commit is None else commit.info.get("inCommitTimestamp")
        if stamp is None:
            raise NeedsSparkError
        return int(stamp)

    def admits(self, actions: Sequence[Action]) -> bool:
        """Take note of another protocol and other metadata, if the driver may commit to a table that has them."""
        self.allow(actions)
        return is_committable(self.protocol, self.metadata) and is_stamped(self.metadata) == (self._stamped is not None)

    def allow(self, actions: Sequence[Action] | None) -> Sequence[Action]:
        """Take note that the commit will bring another protocol and other metadata; return the actions that do."""
        for action in actions or ():
            self.protocol, self.metadata = action.get("protocol", self.protocol), action.get("metaData", self.metadata)
        return actions or ()

    def commit(self, actions: Sequence[Action], mode: str, record: Record, metrics: Mapping[str, int]) -> int:
        """Make the next version; returns its number."""
        version, target = self.read + 1, self.target
        with commit_lock(target.path):
            # Even a commit that moved no row, compaction, may have taken the files that this one rewrites.
            if target.check(self.expected) != self.read:
                raise conflict(target.name)
            number = target.next_number
            said = record_text(record, metrics["numInsertedRows"], metrics["numDeletedRows"])
            columns = self.metadata.get("partitionColumns") or ()
            stamp = None if self._stamped is None else max(now_ms(), self._stamped + 1)
            text = commit_lines(
                actions,
                mode=mode,
                partition_by=columns,
                number=number,
                record=said,
                read=self.read,
                metrics=metrics,
                stamp=stamp,
                follows=target.log.digest(self.read) if self.folder.storage.overwrites_late else None,
            )
            self.may_be_committed = True
            storage, made = self.folder.storage, commit_file(self.folder, version)
            try:
                mark = storage.put_if_absent(made, text.encode())
            except FileExistsError as error:
                self.may_be_committed = False
                raise conflict(target.name) from error
            except UncertainPutError:
                raise
            except OSError:
                self.may_be_committed = not storage.missing([made])
                raise
            target.log.committed(version, text, mark)
            if (files := target.table.files(version)) is not None:
                checksum = checksum_text(files, self.metadata, self.protocol, stamp)
                # The version is valid without it, only slower to read.
                storage.later(partial(storage.put, made.removesuffix(".json") + ".crc", checksum.encode()))
            sweep(target.table, version)
        CHECKPOINTS.offer(target.table, version)
        return version
