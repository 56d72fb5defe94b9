"""The next version of a table on a local file system, made in the driver, whoever wrote the files it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trickle.tables.contract import record_text
from trickle.tables.delta.commit import commit_lock, conflict
from trickle.tables.delta.driver.commit import commit_lines, put_checksum, put_commit, sweep_transactions
from trickle.tables.delta.driver.fit import NeedsSparkError, checkpoint_interval, is_writable
from trickle.tables.delta.log import local_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trickle.tables.contract import Record, TargetState
    from trickle.tables.delta.driver.write import Action
    from trickle.tables.delta.target import DeltaTarget


_SWEPT_EVERY: Final = 10
"""Commits between looks for old transactions: to list a log takes longer than the rest of a commit."""


class LocalLog:
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
        folder, log = local_path(target.path), target.log
        if folder is None or not log.is_plain:
            raise NeedsSparkError
        self.folder = folder
        self.metadata = log.metadata(self.read)
        self.protocol = log.protocol(self.read)
        if not is_writable(self.protocol, self.metadata):
            raise NeedsSparkError
        self.may_be_committed = False

    @property
    def owes_checkpoint(self) -> bool:
        """True if the next commit must bring a checkpoint, which only Spark writes."""
        return (self.read + 1) % checkpoint_interval(self.metadata) == 0

    def commit(self, actions: Sequence[Action], mode: str, record: Record, metrics: Mapping[str, int]) -> int:
        """Make the next version; gives its number."""
        version, target = self.read + 1, self.target
        with commit_lock(target.path):
            # Even a commit that moved no row, compaction, may have taken the files that this one rewrites.
            if target.check(self.expected) != self.read:
                raise conflict(target.name)
            number = target.next_number
            said = record_text(record)
            text = commit_lines(actions, mode=mode, number=number, record=said, read=self.read, metrics=metrics)
            self.may_be_committed = True
            log = self.folder / "_delta_log"
            try:
                put_commit(log, version, text)
            except FileExistsError as error:
                self.may_be_committed = False
                raise conflict(target.name) from error
            except OSError:
                self.may_be_committed = (log / f"{version:020d}.json").exists()
                raise
            if (files := target.files.at(version)) is not None:
                put_checksum(log, version, files, self.metadata, self.protocol)
            if version % _SWEPT_EVERY == 0:
                sweep_transactions(log)
        return version
