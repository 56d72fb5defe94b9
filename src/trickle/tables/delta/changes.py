"""Finds the files of a Delta table with the change between two versions. Pure: commits in, a reading plan out.

Law    rows(upto) - rows(since) = sum over the commits of (rows of added files - rows of removed files),
       a file counted with the deletion vector it had. Equal files of opposite sign cancel.
Ways   ``files``      the commits that changed data; compaction, which moves rows without changing them, is left out
       ``feed``       the same, but a commit that wrote change files is read from those alone
       ``snapshots``  all commits, compaction too: what is left is the difference of the two snapshots' file lists
       Each is exact by the law (compaction adds zero; change files are by the format's rule the whole change of their
       commit), so the cheapest is taken among those whose files still exist.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trickle.tables.delta.deletion_vectors import vector_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trickle.tables.delta.actions import Commit, FileAction


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """The files to read for a change.

    Attributes:
        added: Files whose rows were inserted. A file may be here more than once: then its rows count as often.
        removed: Files whose rows were deleted.
        remasked: Files that stayed but with another deletion vector: before, after. Only the rows masked by one of
            the two changed, so the unchanged rows of a big file never enter the change.
        feed: Change files, which carry their own signs.
    """

    added: tuple[FileAction, ...] = ()
    removed: tuple[FileAction, ...] = ()
    remasked: tuple[tuple[FileAction, FileAction], ...] = ()
    feed: tuple[FileAction, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if no row changed."""
        return not (self.added or self.removed or self.remasked or self.feed)

    @property
    def is_append(self) -> bool:
        """True if the change is append-only."""
        return not (self.removed or self.remasked or self.feed)

    @property
    def bytes(self) -> int:
        """Count the bytes of the files, before column pruning."""
        return sum(file.size for file in (*self.added, *self.removed, *self.feed)) + self.masked_bytes

    @property
    def masked_bytes(self) -> int:
        """Count the bytes of the files of which only some rows count."""
        return sum(after.size for _, after in self.remasked)

    def at_risk(self, commits: Sequence[Commit]) -> set[str]:
        """List the files of this plan that VACUUM may have removed, given all commits since: those no longer in the table.

        Deletion vectors are files too. Change files are never in the table.
        """
        dropped = {file.path for commit in commits for file in commit.removes}
        named = (*self.added, *self.removed, *(file for pair in self.remasked for file in pair))
        return paths_with_vectors((*self.feed, *(file for file in named if file.path in dropped)))


def reading_plans(commits: Sequence[Commit]) -> list[ReadingPlan]:
    """Return the ways to read the change of these commits, the best first.

    A way in which rows only come goes before the others, because what follows is cheaper then; after that, fewest bytes.
    """
    changing = [commit for commit in commits if commit.changes_data]
    plans = [_net_files(changing)]
    if any(commit.feed for commit in changing):
        feed = tuple(file for commit in changing for file in commit.feed)
        plans.append(_net_files([commit for commit in changing if not commit.feed], feed))
    if len(changing) < len(commits) and not plans[0].is_empty:
        plans.append(_net_files(commits))
    return sorted(plans, key=lambda plan: (not plan.is_append, plan.bytes))


def removed_files(commits: Sequence[Commit]) -> set[str]:
    """List the files of the snapshot before these commits that they removed, including compaction."""
    plan = _net_files(commits)
    return paths_with_vectors((*plan.removed, *(before for before, _ in plan.remasked)))


def _net_files(commits: Sequence[Commit], feed: tuple[FileAction, ...] = ()) -> ReadingPlan:
    """Sum the signed files of the commits and pair the rest by path."""
    weights: Counter[tuple[str, str]] = Counter()
    files: dict[tuple[str, str], FileAction] = {}
    for commit in commits:
        for file in commit.removes:
            weights[file.key] -= 1
            files.setdefault(file.key, file)
        for file in commit.adds:
            weights[file.key] += 1
            files[file.key] = file  # an add has statistics, a remove does not
    added: dict[str, list[FileAction]] = {}
    removed: dict[str, list[FileAction]] = {}
    for key, weight in weights.items():
        side = added if weight > 0 else removed
        side.setdefault(key[0], []).extend([files[key]] * abs(weight))
    remasked = [
        (removed[path].pop(), added[path].pop())
        for path in added.keys() & removed.keys()
        for _ in range(min(len(added[path]), len(removed[path])))
    ]
    return ReadingPlan(
        added=tuple(file for some in added.values() for file in some),
        removed=tuple(file for some in removed.values() for file in some),
        remasked=tuple(remasked),
        feed=feed,
    )


def layers(files: Iterable[FileAction]) -> list[list[FileAction]]:
    """Split files so that no path occurs twice in a part: a scan knows one deletion vector per path."""
    parts: list[list[FileAction]] = []
    seen: Counter[str] = Counter()
    for file in files:
        depth = seen[file.path]
        seen[file.path] += 1
        if depth == len(parts):
            parts.append([])
        parts[depth].append(file)
    return parts


_ROWS_BY_OPERATION: Final[Mapping[str, Mapping[str, int]]] = {
    "DELETE": {"numdeletedrows": 1},
    "UPDATE": {"numupdatedrows": 2},
    "MERGE": {"numtargetrowsinserted": 1, "numtargetrowsdeleted": 1, "numtargetrowsupdated": 2},
    "WRITE": {"numinsertedrows": 1, "numdeletedrows": 1},  # ours alone: a stream table that is read by another
}
"""Changed rows that an operation's own metrics tell: metric -> how often a row of it counts.

Spark writes ``numDeletedRows``, delta-rs ``num_deleted_rows``.
"""


def changed_rows(commits: Sequence[Commit], plan: ReadingPlan) -> int | None:
    """Bound the changed rows from above by what the log says, None if it does not say.

    Metrics know that an update of one row in a big file changed one row; file statistics only know the file.
    """
    by_metrics = [_rows_by_metrics(commit) for commit in commits if commit.changes_data]
    if None not in by_metrics:
        return sum(rows for rows in by_metrics if rows is not None)
    known = [file.records - file.masked if file.records is not None else None for file in plan.added + plan.removed]
    known += [before.masked + after.masked for before, after in plan.remasked]
    if plan.feed or None in known:
        return None
    return sum(rows for rows in known if rows is not None)


def _rows_by_metrics(commit: Commit) -> int | None:
    if not commit.removes and not commit.feed:
        counts = [file.records for file in commit.adds]
        return None if None in counts else sum(rows for rows in counts if rows is not None)
    written: Mapping[str, Any] = commit.info.get("operationMetrics") or {}
    metrics = {name.replace("_", "").lower(): value for name, value in written.items()}
    wanted = _ROWS_BY_OPERATION.get(commit.operation)
    if wanted is None or any(name not in metrics for name in wanted):
        return None
    return sum(int(metrics[name]) * times for name, times in wanted.items())


def paths_with_vectors(files: Iterable[FileAction]) -> set[str]:
    """Return the paths of files and of those that hold their deletion vectors."""
    paths = set()
    for file in files:
        paths.add(file.path)
        vector = file.body.get("deletionVector")
        if vector and (path := vector_path(vector)) is not None:
            paths.add(path)
    return paths
