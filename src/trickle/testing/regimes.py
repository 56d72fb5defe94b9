"""Limits so small that a table of ten rows takes the ways that only big tables take otherwise.

A regime is a set of options. The corpus, the fuzzer and the TPC suites run under all of them: results are exact and
refreshes differential under each. Every limit of ``Options`` is in at least one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from zlib import crc32

from trickle.errors import DefinitionError
from trickle.model.options import Options

_MANY: Final = 10**9

REGIMES: Final[Mapping[str, Options]] = MappingProxyType(
    {
        "default": Options(),
        # Nothing is read whole: every row is looked up by key, and what is known of some keys serves others.
        # Every commit owes a checkpoint.
        "look-ups": Options(
            whole_rows=0,
            whole_rows_asked=0,
            lookup_cache_share=_MANY,
            column_cache_bytes=0,
            column_cache_noted=1,
            roll_forward_rows=0,
            roll_forward_steps=1,
            polars_net_rows=0,
            checkpoint_interval=1,
            sweep_interval=1,
            idle_versions=0,
        ),
        # Look-ups give up after a few keys or rows, so that terms are computed half in the driver and half by Spark.
        # Files are written, and commits made, by Spark and Delta.
        "short look-ups": Options(
            whole_rows=0,
            whole_rows_asked=3,
            lookup_keys=3,
            lookup_rows=4,
            lookup_files=2,
            refresh_lookup_rows=6,
            lookup_cache_entries=1,
            lookup_cache_share=1,
            driver_pairs=8,
            driver_quotients=0,
            driver_evaluated=0,
            commit_rows=0,
            commit_bytes=0,
            commit_actions=0,
            one_file_rows=0,
            one_file_bytes=0,
        ),
        # Columns are cached, sorted and encoded when they are first asked for, and snapshots rolled forward for ever.
        # Rewrites make one file of all.
        "columns at once": Options(
            whole_rows=0,
            column_cache_asks=1,
            column_cache_bytes=64 * 1024**2,
            index_looks=1,
            index_rows_per_key=0,
            bundle_files=2,
            encoding_sample=10,
            encoding_texts=10,
            encoding_repeats=1,
            roll_forward_share=1,
            lookup_cache_bytes=0,
            commit_files=0,
            commit_chunks=0,
        ),
        # Every result has rows deleted by deletion vectors, in files; small files are soon written anew.
        "vectors": Options(
            whole_rows=0,
            vector_rows=0,
            vector_bytes=0,
            inline_vector_rows=0,
            appended_files=2,
            masked_share=_MANY,
            compacted_bytes=1,
            column_cache_asks=1,
            checkpoint_interval=4,
        ),
        # Limits amid what small tables and changes have: a stream table passes them, one way and back, as its sources
        # grow and shrink.
        "halfway": Options(
            whole_rows=12,
            whole_rows_asked=12,
            lookup_keys=5,
            lookup_rows=12,
            lookup_cache_entries=3,
            column_cache_asks=2,
            index_looks=2,
            roll_forward_steps=3,
            bundle_files=3,
            bundled_file_bytes=1000,
            tiny_files=1,
            tiny_file_bytes=900,
            driver_change_rows=8,
            driver_pairs=40,
            driver_evaluated=6,
            state_rows=10,
            commit_rows=20,
            vector_rows=5,
            inline_vector_rows=2,
            checkpoint_interval=3,
        ),
        # State tables are given up as soon as they have more than three rows.
        # Every second operator that the driver could compute is left to Spark.
        "no state": Options(state_rows=3, state_look_back=0, whole_rows=4, spark_share=2, release_rows=0),
        # No change is small enough for the driver: it stays in the cluster. Small commits are made by the driver of
        # what Spark's tasks wrote.
        "big changes": Options(driver_change_rows=0, assumed_row_bytes=1, commit_rows=2),
        # Changes are read by Spark and computed in the driver over tables that are not searched.
        # Nothing is remembered, and Delta lists the files.
        "forgetful": Options(
            driver_change_bytes=0,
            driver_change_rows_read=0,
            change_cache_bytes=0,
            rewritten_cache_bytes=0,
            whole_rows=0,
            lookup_bytes=0,
            scanned_files=0,
            lookup_file_bytes=0,
            read_ahead_bytes=0,
            lookup_cache_entries=0,
            log_commits_kept=1,
            tables_kept=1,
            upstream_kept=1,
            record_columns=0,
            commit_digests=1,
            compared_columns=0,
            history_waiting_rows=1,
            log_steps_back=1,
            log_replay=0,
            snapshots_kept=1,
            reading_plans_kept=1,
            file_facts_kept=1,
            disk_cache_bytes=0,
            statistics_kept=1,
            change_plans_kept=1,
            constants_kept=1,
            expressions_kept=1,
            costs_kept=1,
            attempts=1,
            verify_rows=1000,
            cut_versions=1,
            history_days=1,
            verify_sample_rows=3,
            small_files=1,
            small_file_bytes=1024**3,
        ),
    }
)


def regime(name: str) -> Options:
    """Return a regime by its name.

    Raises:
        DefinitionError: ``UNKNOWN_REGIME``.
    """
    if name not in REGIMES:
        hint = f"Known: {', '.join(REGIMES)}."
        raise DefinitionError("UNKNOWN_REGIME", f"there is no regime {name!r}.", hint=hint)
    return REGIMES[name]


LIGHT: Final = ("default", "look-ups", "columns at once", "vectors", "halfway", "no state")
_DRAWN: Final = (*LIGHT, *LIGHT, *LIGHT, *(name for name in REGIMES if name not in LIGHT))
"""Where Spark reads or writes, a refresh of ten rows takes seconds: those regimes are drawn less often."""


def drawn(title: str) -> str:
    """Draw a regime by a title: always the same one, and all of them over many titles.

    >>> drawn("inner join") == drawn("inner join")
    True
    """
    return _DRAWN[crc32(title.encode()) % len(_DRAWN)]
