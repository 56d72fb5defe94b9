"""Every limit and switch of the engine, in one place.

The defaults suit tables of any size on any machine. A limit decides which of two ways a refresh takes, never what it
computes: tests shrink limits so that a table of ten rows takes the ways of a big one (``trickle.testing.regimes``).
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from trickle.errors import DefinitionError

KIB: Final = 1024
MIB: Final = 1024**2
GIB: Final = 1024**3

OPTIMISATIONS: Final = frozenset(
    {
        "driver_execution",
        "declared_keys",
        "driver_io",
        "column_cache",
        "key_ranges",
        "key_lookup",
        "merged_state",
        "narrow_scans",
        "order_joins",
        "push_keys",
        "replace_keys",
        "state_tables",
        "stored_top",
    }
)
"""What ``disable`` may name. Without them a refresh takes longer and gives the same rows."""


def _limit(default: int | None, unit: str, text: str, *, least: int = 0) -> Any:
    return field(default=default, metadata={"unit": unit, "text": text, "least": least})


@dataclass(frozen=True, kw_only=True)
class Options:
    """Limits and switches, for ``Trickle(spark, options=Options(…))``.

    Raises:
        DefinitionError: ``BAD_OPTION``, a limit is no whole number or below its least; ``UNKNOWN_OPTION``, ``disable``
            names no optimisation.
    """

    disable: frozenset[str] = field(
        default=frozenset(),
        metadata={"unit": "names", "text": "Optimisations to switch off. Results are the same without them."},
    )
    stored_plans: bool = field(
        default=True,
        metadata={
            "unit": "switch",
            "text": "Whether definitions stored as plans or Python functions are read. They run code: switch it off "
            "where others may set table properties.",
        },
    )

    # -- changes
    driver_change_rows: int = _limit(
        3_000_000, "rows", "Changes with more rows are read and computed by Spark, not in the driver."
    )
    driver_change_bytes: int = _limit(256 * MIB, "bytes", "Files of a change that are larger are read by Spark.")
    driver_change_rows_read: int = _limit(
        20_000_000, "rows", "A small change that lies in files with more rows is read by Spark."
    )
    polars_net_rows: int = _limit(
        50_000, "rows", "Changes with more rows are netted by polars, smaller ones by Arrow, which starts quicker."
    )
    assumed_row_bytes: int = _limit(
        30, "bytes", "Taken for the size of a changed row where a log does not count rows.", least=1
    )

    # -- key look-ups
    whole_rows: int = _limit(
        50_000, "rows", "A table with no more rows is read whole and kept when some of its rows are looked up."
    )
    whole_rows_asked: int = _limit(
        500_000, "rows", "A table with no more rows is read whole into the driver when all of them are needed."
    )
    lookup_keys: int = _limit(2_000_000, "keys", "Look-ups of more keys are left to Spark.")
    lookup_rows: int = _limit(5_000_000, "rows", "Look-ups that find more rows are left to Spark.")
    lookup_bytes: int = _limit(512 * MIB, "bytes", "Look-ups that are expected to find more are left to Spark.")
    lookup_file_bytes: int = _limit(4 * GIB, "bytes", "Look-ups that must search larger files are left to Spark.")
    lookup_files: int = _limit(1000, "files", "A table with more files is read and searched by Spark.")
    refresh_lookup_rows: int = _limit(
        10_000_000, "rows", "Once a refresh has looked up more rows, the rest of it is left to Spark."
    )
    lookup_cache_entries: int = _limit(32, "look-ups", "Look-ups whose rows are remembered, for each table.")
    lookup_cache_bytes: int = _limit(64 * MIB, "bytes", "Rows of look-ups that are remembered, for each table.")
    lookup_cache_share: int = _limit(
        2, "keys", "Remembered rows are used if at least one in this many of the wanted keys is known.", least=1
    )

    # -- roll-forward of a snapshot whose columns are cached
    roll_forward_share: int = _limit(
        20, "rows", "A snapshot is rolled forward while at most one in this many of its rows has changed.", least=1
    )
    roll_forward_rows: int = _limit(2_000_000, "rows", "A snapshot is rolled forward over no more changed rows.")
    roll_forward_steps: int = _limit(50, "versions", "A snapshot is rolled forward over no more versions.")

    # -- column cache
    column_cache_bytes: int | None = _limit(
        None, "bytes", "Columns kept in the driver. Default: a 16th of the memory, at most 2 GiB."
    )
    column_cache_asks: int = _limit(2, "look-ups", "A column is kept when it is asked for this many times.", least=1)
    column_cache_noted: int = _limit(10_000, "columns", "Columns not kept that are remembered to have been asked for.")
    index_looks: int = _limit(4, "look-ups", "A kept column is sorted after this many searches.", least=1)
    index_rows_per_key: int = _limit(
        32, "rows", "An index is used if the column has at least this many rows for each wanted key."
    )
    encoding_sample: int = _limit(2000, "rows", "Rows looked at to see whether the texts of a column repeat.", least=1)
    encoding_texts: int = _limit(500, "texts", "Texts that may differ in the sample of a column that is encoded.")
    encoding_repeats: int = _limit(8, "times", "How often each text must repeat on average to be encoded.", least=1)

    # -- computing in the driver
    driver_pairs: int = _limit(20_000_000, "rows", "Joins that give more pairs are left to Spark.")
    driver_quotients: int = _limit(100_000, "rows", "More quotients of long decimals are left to Spark.")
    spark_share: int = _limit(
        0, "operators", "Every n-th operator that the driver could compute is left to Spark; 0 leaves none. For tests."
    )
    release_rows: int = _limit(
        100_000, "rows", "A refresh that held more rows gives the memory back to the system at once."
    )

    # -- state tables
    state_rows: int = _limit(
        1_000_000, "rows", "A state table with more rows is given up: recomputing by key costs less than rewriting it."
    )
    state_look_back: int = _limit(
        20, "versions", "Versions of a state table that a process looks back over when it cleans up after another."
    )

    # -- commits
    commit_rows: int = _limit(1_000_000, "rows", "Commits of more rows, or to larger tables, are made by Spark.")
    commit_bytes: int = _limit(64 * MIB, "bytes", "Tables with larger files are rewritten by Spark.")
    commit_files: int = _limit(8, "files", "A rewrite in the driver makes one file of a table that has more.")
    commit_chunks: int = _limit(16, "chunks", "Rows in more pieces are laid together before they are written.")
    commit_actions: int = _limit(1000, "files", "Commits that name more files are made by Delta itself.")
    one_file_bytes: int = _limit(32 * MIB, "bytes", "Rewrites by Spark that are smaller make one file.")
    one_file_rows: int = _limit(100_000, "rows", "Inserts by Spark of fewer rows make one file.")
    checkpoint_interval: int = _limit(
        50, "commits", "Commits between two checkpoints of a stream table or state table made from now on.", least=1
    )

    # -- logs
    log_commits_kept: int = _limit(256, "commits", "Parsed commits kept for each table.", least=1)
    log_steps_back: int = _limit(
        40, "commits", "Commits read backwards in search of a table's metadata before Delta is asked.", least=1
    )
    log_replay: int = _limit(500, "commits", "Commits replayed to list a table's files before Delta is asked.")
    snapshots_kept: int = _limit(3, "versions", "Versions of a source whose handles and file lists are kept.", least=1)
    reading_plans_kept: int = _limit(
        8, "plans", "Plans of how to read a change that are kept for each source.", least=1
    )
    statistics_kept: int = _limit(
        200, "columns", "Columns of versions whose values are counted by the log, kept for each source.", least=1
    )
    file_facts_kept: int = _limit(2000, "files", "Parquet files whose footers are kept for each source.", least=1)
    costs_kept: int = _limit(24, "changes", "Kinds of change whose cost is remembered for each table.", least=1)

    change_plans_kept: int = _limit(
        64, "plans", "Change plans kept for each table, one for each set of changed sources.", least=1
    )
    constants_kept: int = _limit(500, "constants", "Whole numbers kept as constants of Spark's plans.", least=1)
    expressions_kept: int = _limit(
        5_000, "expressions", "Expressions of which it is kept whether the driver can compute them.", least=1
    )

    # -- verbs
    attempts: int = _limit(3, "times", "How often a refresh that lost to another one is tried in all.", least=1)
    verify_rows: int = _limit(
        10_000, "rows", "Differing rows that verify compares with a tolerance for floating point."
    )

    def __post_init__(self) -> None:
        """Check every value."""
        object.__setattr__(self, "disable", frozenset(self.disable))
        if unknown := self.disable - OPTIMISATIONS:
            text = f"there is no optimisation named {', '.join(sorted(map(str, unknown)))}."
            raise DefinitionError("UNKNOWN_OPTION", text, hint=f"Known are {', '.join(sorted(OPTIMISATIONS))}.")
        if not isinstance(self.stored_plans, bool):
            raise DefinitionError("BAD_OPTION", f"stored_plans is {self.stored_plans!r}.", hint="Use True or False.")
        for limit in limits():
            value, least = getattr(self, limit.name), limit.metadata["least"]
            if value is None and limit.default is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                text = f"option {limit.name} is {value!r}: it takes a whole number of {limit.metadata['unit']}."
                raise DefinitionError("BAD_OPTION", text, hint=f"The least is {least}, the default {limit.default}.")

    @property
    def cache_bytes(self) -> int:
        """The bytes that the column cache may take."""
        if self.column_cache_bytes is not None:
            return self.column_cache_bytes
        return min(2 * GIB, memory_bytes() // 16)

    def has(self, optimisation: str) -> bool:
        """Tell whether an optimisation is on."""
        return optimisation not in self.disable


def limits() -> tuple[Any, ...]:
    """Give the fields that are limits, in order."""
    return tuple(f for f in fields(Options) if "least" in f.metadata)


def with_disabled(options: Any, names: Collection[str]) -> Options:
    """Give options with more optimisations switched off.

    Raises:
        DefinitionError: ``BAD_OPTION``, these are no options; ``UNKNOWN_OPTION``.
    """
    if not isinstance(options, Options):
        raise DefinitionError("BAD_OPTION", f"options is {options!r}.", hint="Give trickle.Options(…).")
    if isinstance(names, str):
        names = {names}
    return replace(options, disable=options.disable | frozenset(names)) if names else options


_CGROUPS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@cache
def memory_bytes() -> int:
    """Give the memory of the machine, or of the control group that bounds this process."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _CGROUPS:
        try:
            text = path.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            found = min(found, int(text))
    return found


DEFAULT: Final = Options()
