"""Every limit and switch of the engine, in one place.

The defaults suit tables of any size on any machine. A limit decides how a refresh computes a result, never what the
result is. Tests shrink limits so that a table of ten rows takes the code paths of a big one (``trickle.testing.regimes``).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

from trickle.errors import DefinitionError

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
"""What ``disable`` may name. Without them a refresh takes longer and computes the same rows."""


_MAX: Final = 2**31 - 2
"""The highest value of a limit that is not of bytes: Spark counts rows of a limit in 31 bits."""

ENOUGH_MEMORY: Final = 8 * GIB
"""Memory of the machine for which the defaults are made; with less, limits marked ``in_memory`` are lower."""


def _limit(default: int | None, unit: str, text: str, *, least: int = 0, in_memory: bool = False) -> Any:
    """Describe a limit; ``in_memory``: so much may be in the driver's memory at once."""
    return field(default=default, metadata={"unit": unit, "text": text, "least": least, "in_memory": in_memory})


@dataclass(frozen=True, kw_only=True)
class Options:
    """Limits and switches, for ``Trickle(spark, options=Options(…))``.

    Raises:
        DefinitionError: ``BAD_OPTION``, a limit is not a whole number or out of its range; ``UNKNOWN_OPTION``, there is no
            option, or in ``disable`` no optimisation, of a name.
    """

    disable: frozenset[str] = field(
        default=frozenset(),
        metadata={"unit": "names", "text": "Optimisations to switch off. Results are the same without them."},
    )
    stored_plans: bool = field(
        default=True,
        metadata={
            "unit": "switch",
            "text": "Whether to read definitions stored as plans or Python functions. They run code: switch this off "
            "if others may set table properties.",
        },
    )

    # -- changes
    driver_change_rows: int = _limit(
        3_000_000, "rows", "Spark, not the driver, reads and computes changes with more rows.", in_memory=True
    )
    driver_change_bytes: int = _limit(
        256 * MIB,
        "bytes",
        "Spark reads the files of a change if they are larger; of files whose deletion vector alone changed, row groups count.",
        in_memory=True,
    )
    driver_change_rows_read: int = _limit(
        20_000_000, "rows", "Spark reads a small change if its files have more rows.", in_memory=True
    )
    polars_net_rows: int = _limit(
        50_000,
        "rows",
        "Several threads read and polars nets changes with more rows; one thread and Arrow, which start faster, smaller ones.",
    )
    change_cache_bytes: int = _limit(
        64 * MIB, "bytes", "Changes kept for other stream tables and for look-ups, for each source.", in_memory=True
    )
    rewritten_cache_bytes: int = _limit(
        256 * MIB,
        "bytes",
        "Columns of rewritten files, of sources without a change feed, kept for the next rewrite.",
        in_memory=True,
    )
    assumed_row_bytes: int = _limit(30, "bytes", "Assumed size of a changed row if a log does not count rows.", least=1)

    # -- graphs
    idle_versions: int = _limit(
        20,
        "versions",
        "A stream table whose upstream committed without changing a row is not touched for so many commits.",
    )
    cut_versions: int = _limit(100, "versions", "How far back versions of one common cut are looked for.", least=1)

    # -- key look-ups
    whole_rows: int = _limit(
        50_000, "rows", "A look-up in a table with at most this many rows reads and keeps the whole table."
    )
    whole_rows_asked: int = _limit(
        500_000,
        "rows",
        "The driver reads a table with at most this many rows if all of them are needed.",
        in_memory=True,
    )
    lookup_keys: int = _limit(2_000_000, "keys", "Spark handles look-ups of more keys.", in_memory=True)
    lookup_rows: int = _limit(5_000_000, "rows", "Spark handles look-ups that find more rows.", in_memory=True)
    lookup_bytes: int = _limit(
        512 * MIB, "bytes", "Spark handles look-ups that are expected to find more.", in_memory=True
    )
    lookup_file_bytes: int = _limit(4 * GIB, "bytes", "Spark handles look-ups that must search larger files.")
    read_ahead_bytes: int = _limit(
        4 * MIB, "bytes", "Of larger changes on object stores, it is asked first whether their files are there."
    )
    scanned_files: int = _limit(1000, "files", "Delta lists the files of a table with more when Spark reads it.")
    lookup_files: int = _limit(4000, "files", "Spark handles look-ups that must search more files.")
    bundle_files: int = _limit(
        64,
        "files",
        "Look-ups that must search more files cache and search small ones together, about this many at a time.",
        least=1,
    )
    bundled_file_bytes: int = _limit(8 * MIB, "bytes", "Larger files are cached and searched each by itself.")
    tiny_files: int = _limit(4, "files", "Look-ups that must search more tiny files cache and search those together.")
    tiny_file_bytes: int = _limit(MIB, "bytes", "Files that are not larger count as tiny.")
    refresh_lookup_rows: int = _limit(
        10_000_000, "rows", "Once a refresh has looked up more rows, Spark computes the rest of it.", in_memory=True
    )
    lookup_cache_entries: int = _limit(32, "look-ups", "Look-ups in the look-up cache, for each table.")
    lookup_cache_bytes: int = _limit(64 * MIB, "bytes", "Rows in the look-up cache, for each table.", in_memory=True)
    lookup_cache_share: int = _limit(
        2, "keys", "A cached look-up is used if it has at least one in this many of the wanted keys.", least=1
    )

    # -- roll-forward of a snapshot whose columns are cached
    roll_forward_share: int = _limit(
        20, "rows", "A snapshot is rolled forward while at most one in this many of its rows has changed.", least=1
    )
    roll_forward_rows: int = _limit(
        2_000_000, "rows", "A snapshot is rolled forward over at most this many changed rows.", in_memory=True
    )
    roll_forward_steps: int = _limit(50, "versions", "A snapshot is rolled forward over at most this many versions.")

    # -- column cache
    column_cache_bytes: int | None = _limit(
        None, "bytes", "Size of the column cache in the driver. Default: a 16th of the memory, at most 2 GiB."
    )
    column_cache_asks: int = _limit(
        2, "look-ups", "A column enters the cache when it is read this many times.", least=1
    )
    column_cache_noted: int = _limit(10_000, "columns", "Columns outside the cache whose reads are counted.")
    index_looks: int = _limit(4, "look-ups", "A cached column is sorted after this many searches.", least=1)
    index_rows_per_key: int = _limit(
        32, "rows", "An index is used if the column has at least this many rows for each wanted key."
    )
    encoding_sample: int = _limit(2000, "rows", "Rows sampled to see whether the strings of a column repeat.", least=1)
    encoding_texts: int = _limit(500, "strings", "Distinct strings that the sample of an encoded column may have.")
    encoding_repeats: int = _limit(
        8, "times", "How often each string must repeat on average for the column to be encoded.", least=1
    )

    # -- cache of object stores
    disk_cache_bytes: int = _limit(
        4 * GIB,
        "bytes",
        "Files of object stores kept on the disk of the driver, for all processes of a user; 0 means none. They take at most a "
        "quarter of what the disk has free.",
    )

    # -- computing in the driver
    driver_pairs: int = _limit(20_000_000, "rows", "Spark computes joins that produce more pairs.", in_memory=True)
    driver_quotients: int = _limit(100_000, "rows", "Spark computes the quotients of long decimals if there are more.")
    driver_evaluated: int = _limit(
        20_000, "rows", "A Spark job evaluates functions that only Spark knows if there are more rows."
    )
    spark_share: int = _limit(
        0, "operators", "Spark computes every n-th operator that the driver could compute; 0 means none. For tests."
    )
    release_rows: int = _limit(
        100_000, "rows", "A refresh that held more rows returns the memory to the system at once.", in_memory=True
    )

    # -- state tables
    state_rows: int = _limit(
        1_000_000, "rows", "A state table with more rows is dropped: recomputing by key costs less than rewriting it."
    )
    state_look_back: int = _limit(
        20, "versions", "Versions of a state table that a process checks when it cleans up after another."
    )

    # -- commits
    commit_rows: int = _limit(
        1_000_000, "rows", "Spark makes commits of more rows, or to larger tables.", in_memory=True
    )
    commit_bytes: int = _limit(64 * MIB, "bytes", "Spark rewrites tables with larger files.", in_memory=True)
    commit_files: int = _limit(
        8, "files", "A rewrite in the driver merges the files of a table that has more into one."
    )
    vector_rows: int = _limit(
        1_000_000,
        "rows",
        "Results with more rows have rows deleted by deletion vectors, unless a property says otherwise.",
    )
    vector_bytes: int = _limit(64 * MIB, "bytes", "The same for results with larger files.")
    inline_vector_rows: int = _limit(
        32, "rows", "Deletion vectors of at most this many rows stand in the log itself, not in a file."
    )
    appended_files: int = _limit(
        100, "files", "A commit that masks rows writes the small files anew with its own rows if there are more."
    )
    commit_chunks: int = _limit(16, "chunks", "Rows in more chunks are combined before they are written.")
    commit_actions: int = _limit(1000, "files", "Delta itself makes commits that name more files.")
    one_file_bytes: int = _limit(32 * MIB, "bytes", "Smaller rewrites by Spark produce one file.")
    one_file_rows: int = _limit(100_000, "rows", "Inserts of fewer rows by Spark produce one file.")
    checkpoint_interval: int = _limit(
        50, "commits", "Commits between two checkpoints of a newly created stream table or state table.", least=1
    )

    # -- logs
    log_commits_kept: int = _limit(256, "commits", "Parsed commits kept for each table.", least=1)
    log_steps_back: int = _limit(
        40, "commits", "Commits read backwards in search of a table's metadata before Delta is called.", least=1
    )
    log_replay: int = _limit(500, "commits", "Commits replayed to list a table's files before Delta is called.")
    snapshots_kept: int = _limit(3, "versions", "Versions of a source whose handles and file lists are kept.", least=1)
    reading_plans_kept: int = _limit(8, "plans", "Reading plans of changes kept for each source.", least=1)
    statistics_kept: int = _limit(
        200, "columns", "Estimates of a column's distinct values, from the log, kept for each source.", least=1
    )
    file_facts_kept: int = _limit(8000, "files", "Parquet files whose footers are kept for each source.", least=1)
    sweep_interval: int = _limit(
        10,
        "commits",
        "Commits between two searches for unfinished files in a log: listing it takes longer than the rest of a commit.",
        least=1,
    )
    commit_digests: int = _limit(
        20,
        "commits",
        "A refresh remembers what so many of the commits that it read were like, to notice one that was there in part.",
    )
    record_columns: int = _limit(
        64, "columns", "A commit names the columns that the query reads, if they are at most this many."
    )
    costs_kept: int = _limit(24, "changes", "Kinds of change whose cost is recorded for each table.", least=1)

    change_plans_kept: int = _limit(
        64, "plans", "Change plans kept for each table, one for each set of changed sources.", least=1
    )
    constants_kept: int = _limit(500, "constants", "Whole numbers kept as constants of Spark's plans.", least=1)
    expressions_kept: int = _limit(
        5_000, "expressions", "Expressions for which it is cached whether the driver can compute them.", least=1
    )

    tables_kept: int = _limit(
        10_000,
        "tables",
        "Tables whose logs are kept open: of sources, and of tables looked at to see whether they are stream tables.",
        least=1,
    )
    upstream_kept: int = _limit(
        256,
        "tables",
        "Stream tables whose sources and newest record are kept, to see whether they are behind.",
        least=1,
    )

    # -- running for months
    history_days: int = _limit(30, "days", "How long the history table keeps a refresh.", least=1)
    history_waiting_rows: int = _limit(
        100_000, "rows", "While the history table cannot be written, the newest rows up to this many wait.", least=1
    )
    verify_sample_rows: int = _limit(
        1_000_000,
        "rows",
        "Of a table with more rows, the loop verifies a sample of the keys, with about so many.",
        least=1,
    )
    small_file_bytes: int = _limit(
        16 * MIB, "bytes", "Files of a stream table that are smaller count as small.", least=1
    )
    small_files: int = _limit(32, "files", "The idle loop merges the files of a table with more small ones.", least=1)
    masked_share: int = _limit(
        4, "rows", "The idle loop writes a file anew if more than one in this many of its rows is deleted.", least=1
    )
    compacted_bytes: int = _limit(128 * MIB, "bytes", "The idle loop writes files of about this size.", least=1)

    # -- verbs
    attempts: int = _limit(
        3, "times", "How often a refresh is tried in all if others commit first, or storage does not answer.", least=1
    )
    compared_columns: int = _limit(
        200,
        "columns",
        "A query that replaces another is recomputed if one of them has more columns: whether its rows follow from the "
        "stored ones is asked column by column.",
    )
    verify_rows: int = _limit(
        10_000, "rows", "Differing rows that verify compares with a tolerance for floating point."
    )

    def __new__(cls, **given: Any) -> Self:
        """Refuse unknown names, before Python does without saying which there are."""
        known = sorted(option.name for option in fields(cls))
        if unknown := sorted(given.keys() - set(known)):
            near = [name for one in unknown for name in get_close_matches(one, known)]
            text = f"there is no option named {', '.join(unknown)}."
            raise DefinitionError("UNKNOWN_OPTION", text, hint=f"Known: {', '.join(near or known)}.")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Check every value."""
        given: Any = self.disable
        names = {given} if isinstance(given, str) else given
        if not isinstance(names, Collection) or not all(isinstance(name, str) for name in names):
            raise DefinitionError("BAD_OPTION", f"disable is {names!r}.", hint="Give a set of names.")
        object.__setattr__(self, "disable", frozenset(names))
        if unknown := self.disable - OPTIMISATIONS:
            text = f"there is no optimisation named {', '.join(sorted(unknown))}."
            raise DefinitionError("UNKNOWN_OPTION", text, hint=f"Known: {', '.join(sorted(OPTIMISATIONS))}.")
        if not isinstance(self.stored_plans, bool):
            raise DefinitionError("BAD_OPTION", f"stored_plans is {self.stored_plans!r}.", hint="Use True or False.")
        for limit in limits():
            value, least, unit = getattr(self, limit.name), limit.metadata["least"], limit.metadata["unit"]
            most = 2**63 - 1 if unit == "bytes" else _MAX
            if value is None and limit.default is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                text = f"option {limit.name} is {value!r}: it takes a whole number of {unit}."
                hint = f"The minimum is {least}, the maximum {most}, the default {limit.default}."
                raise DefinitionError("BAD_OPTION", text, hint=hint)

    def within(self, memory: int, *, only_defaults: bool = False) -> Options:
        """Return these options with lower limits on what the driver holds at once, if its machine has little memory.

        Args:
            memory: Bytes of the machine or the container. With 8 GiB or more, nothing changes.
            only_defaults: True to leave limits alone that are not at their default.

        Example:
            >>> Options().within(2 * GIB).driver_change_rows
            750000
        """
        if memory >= ENOUGH_MEMORY:
            return self
        share = memory / ENOUGH_MEMORY
        lower: dict[str, Any] = {"column_cache_bytes": min(self.cache_bytes, memory // 16)}
        for limit in limits():
            if limit.metadata["in_memory"]:
                lower[limit.name] = int(getattr(self, limit.name) * share)
        kept = {f.name for f in limits() if only_defaults and getattr(self, f.name) != f.default}
        return replace(self, **{name: value for name, value in lower.items() if name not in kept})

    @property
    def cache_bytes(self) -> int:
        """The bytes that the column cache may take."""
        if self.column_cache_bytes is not None:
            return self.column_cache_bytes
        return min(2 * GIB, memory_bytes() // 16)

    def has(self, optimisation: str) -> bool:
        """Return whether an optimisation is on."""
        return optimisation not in self.disable


def limits() -> tuple[Any, ...]:
    """Return the fields that are limits, in order."""
    return tuple(f for f in fields(Options) if "least" in f.metadata)


def with_disabled(options: Any, names: Collection[str]) -> Options:
    """Return options with more optimisations switched off.

    Raises:
        DefinitionError: ``BAD_OPTION``, these are not options; ``UNKNOWN_OPTION``.
    """
    if not isinstance(options, Options):
        raise DefinitionError("BAD_OPTION", f"options is {options!r}.", hint="Give trickle.Options(…).")
    if isinstance(names, str):
        names = {names}
    return replace(options, disable=options.disable | frozenset(names)) if names else options


@cache
def memory_bytes() -> int:
    """Return the memory of the machine, or of the control group that bounds this process."""
    return min((os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *group_bounds()))


def group_bounds(root: Path = Path("/")) -> Iterator[int]:
    """Yield the bounds in bytes of the control groups that this process is in, each of which lies in another."""
    try:
        groups = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        groups = []
    # In a container the first group may be the one that its files stand for.
    places = [(root / "sys/fs/cgroup", "memory.max"), (root / "sys/fs/cgroup/memory", "memory.limit_in_bytes")]
    for line in groups:
        number, _, rest = line.partition(":")
        kinds, _, path = rest.partition(":")
        if number == "0" or "memory" in kinds.split(","):
            folder, file = places[0 if number == "0" else 1]
            inner = folder / path.strip("/")
            places += [(place, file) for place in (inner, *inner.parents) if place.is_relative_to(folder)]
    for folder, file in dict.fromkeys(places):
        try:
            text = (folder / file).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            yield int(text)


DEFAULT: Final = Options()
