"""Options and regimes: what is refused, and that no limit is out of a small table's reach."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import trickle
from trickle.compile.program import CHANGE_PASSES, PASSES
from trickle.errors import DefinitionError
from trickle.model.options import (
    DEFAULT,
    ENOUGH_MEMORY,
    OPTIMISATIONS,
    Options,
    group_bounds,
    limits,
    memory_bytes,
    with_disabled,
)
from trickle.testing.regimes import REGIMES, drawn, regime

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(trickle.__file__).parent


def test_every_limit_is_in_a_regime():
    untouched = {
        limit.name for limit in limits() if all(getattr(o, limit.name) == limit.default for o in REGIMES.values())
    }

    assert not untouched


FACTS = {
    "of types and numbers: no other value would do": """
        catalyst/lift_state.py: _MAX_DIGITS _LONG_SUM_DIGITS
        catalyst/lower.py: _GREATEST_INT
        compute/driver/expressions.py: WHOLE_DOUBLES _MAX_DIGITS _WHOLE_NUMBERS _DAYS_OF_SHORT_YEARS
        compute/driver/groups.py: _BOUND
        rules/state_merged.py: _MAX_MAGNITUDES
        tables/arrow/rows.py: _MAX_IDS _BYTES
        tables/cache/column_index.py: _BITS _PLACE
        tables/cache/encoding.py: MAX_DIGITS
        tables/delta/driver/carried.py: _BITS
        tables/delta/driver/footers.py: _WIDEST _PLACE
        model/types.py: _DOUBLE_DIGITS
        tables/storage/hadoop.py: _TO_THE_END
    """,
    "of formats and protocols": """
        catalyst/jvm.py: _LIST_OF
        cli/app.py: FAILED USAGE INTERRUPTED
        cli/commands.py: OK FAILED
        cli/output.py: SCHEMA
        cli/run.py: INTERRUPTED
        cli/spark.py: _PAIR
        model/names.py: _MAX_PARTS _NAME_BYTES
        model/options.py: MIB GIB _MAX ENOUGH_MEMORY
        model/schedule.py: _CRON_FIELDS _YEAR_SECONDS _SHORTEST
        observe/places.py: _WITH_CATALOG
        sql/reader.py: _MAX_PARTS
        cli/doctor.py: _GIB _ENOUGH_MEMORY _ENOUGH_DISK
        tables/delta/deletion_vectors.py: _ENCODED_UUID
        tables/delta/driver/footers.py: _FOOTER_END
        tables/delta/driver/fit.py: _FEED_WRITER _MAX_LEGACY_WRITER _NEWEST_READER
        tables/storage/disk_cache.py: _SUM
        tables/storage/failures.py: _SURE _NOT_SURE
    """,
    "seconds: how long something waits, not how much of a table it takes": """
        cli/run.py: _LOOK_SECONDS _FILL_SECONDS
        cli/spark.py: _LOOK_SECONDS
        engine/cancel.py: _AGAIN_SECONDS
        engine/history.py: _WAIT_SECONDS _TRIM_SECONDS
        engine/replacement.py: _HELD_SECONDS
        engine/retry.py: _CONFLICT_SECONDS _STORAGE_SECONDS _LOOK_SECONDS
        notebook.py: _PATIENCE _PAUSE
        observe/status.py: GRACE_SECONDS
        project/streams.py: _POLL_SECONDS
        schedule/idle.py: _STOP_SECONDS
        schedule/loop.py: _FAILED_SECONDS
        schedule/memory.py: _WAIT_SECONDS _TRANSIENT_SECONDS
        tables/storage/client.py: PATIENCE
        tables/storage/credentials.py: _ASKED_FOR _METADATA_WAIT
        tables/storage/disk_cache.py: _TOUCHED_EVERY
        tables/storage/hadoop.py: _OLD_SECONDS
        tables/storage/local.py: _OLD_SECONDS
        tables/storage/schemes.py: _TRIED_EVERY
        tables/storage/small_files.py: _JUST_NOW
        warehouse.py: SETTLE_SECONDS LISTED_SECONDS
    """,
    "weights of estimates: what is chosen by them has the same rows": """
        model/cost.py: _ROWS_A_SECOND _ROWS_A_SECOND_BEYOND _MOMENT _CLEARLY _CATCH_UP _WRONG _MATTERS
        schedule/loop.py: _LISTING_SHARE
        tables/delta/driver/carried.py: _SAMPLE _FEW _MOST
        tables/delta/driver/masking.py: _ENOUGH
    """,
    "what is shown": """
        cli/demo.py: _BATCHES _ROWS
        cli/output.py: _PIPE_WIDTH
        model/nearness.py: RELATIVE ABSOLUTE
        notebook.py: _ROWS
        observe/lag.py: _COUNTED
        project/example_data.py: CUSTOMERS _DAYS
        refresh/verify.py: _SAMPLE
        show/reports.py: _LEAST
    """,
    "a circle has no end, and retries must have one": """
        engine/replacement.py: _TIMES
        engine/upstream.py: _DEPTH
        schedule/lease.py: _TERMS_BACK
        tables/delta/driver/housekeeping.py: _TRIES
        tables/delta/history.py: _TRIES
        tables/storage/client.py: TRIES
    """,
    "of the process, which has many engines: tests give a storage its own": """
        engine/workspaces.py: _COPIES
        layout.py: cache-of-tables-seen
        warehouse.py: cache-of-tables-first-seen
        session.py: _HEAP_FROM _HEAP_TO
        tables/storage/disk_cache.py: BLOCK _CHARGED
        tables/storage/hadoop.py: _AT_ONCE COPIED COPIES _STEPS
        tables/storage/object_store.py: _AT_ONCE CACHE_BYTES _OPEN_AT_ONCE _BEFORE_HINT _GAP
        tables/storage/protocol.py: LATE_COMMITS
        tables/storage/remote_file.py: TAIL BLOCK
    """,
    "of Spark: tests of the border cross it": "tables/arrow/spark.py: _ONE_BATCH",
}
"""Numbers that are no options, by the reason."""


def _numbers(path: Path) -> Iterator[str]:
    """Name the constants of a module that are numbers, and the caches with a number as their limit."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _is_number(node.value):
            yield from map(ast.unparse, node.targets if isinstance(node, ast.Assign) else [node.target])
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).partition("[")[0] == "Cache":
            name = ast.unparse(node.args[0]).strip("'").replace(" ", "-")
            yield from (f"cache-of-{name}" for argument in node.args if _is_number(argument))


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Pow(), left=left, right=right):
            return all(isinstance(side, ast.Name) or _is_number(side) for side in (left, right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_number(operand)
    return False


def test_numbers_stand_in_the_options_alone():
    known = {
        f"{file}: {name}"
        for listed in FACTS.values()
        for file, _, names in (line.partition(": ") for line in map(str.strip, listed.splitlines()) if line)
        for name in names.split()
    }
    found = {
        f"{path.relative_to(SOURCES).as_posix()}: {name}"
        for path in SOURCES.rglob("*.py")
        if path.relative_to(SOURCES).parts[0] != "testing"
        for name in _numbers(path)
    }

    assert found - known == set(), "make it an option, or say above why it is none"
    assert known - found == set(), "these are gone"


def test_every_option_is_described():
    for option in fields(Options):
        assert option.metadata["unit"]
        assert option.metadata["text"].endswith(".")


def test_every_pass_can_be_switched_off():
    assert {*PASSES, *CHANGE_PASSES} <= OPTIMISATIONS


@pytest.mark.parametrize(
    "values",
    [
        *({"whole_rows": value} for value in (-1, "10", True, None)),
        {"snapshots_kept": 0},
        {"whole_rows": 2**31 - 1},
        {"column_cache_bytes": 2**63},
        *({"disable": value} for value in (None, 7, [1])),
        {"stored_plans": 1},
    ],
)
def test_values_out_of_range_are_named(values):
    with pytest.raises(DefinitionError) as error:
        Options(**values)

    assert error.value.code == "BAD_OPTION"
    assert next(iter(values)) in error.value.message


def test_unknown_options_are_named_with_those_there_are():
    for make in (Options, partial(replace, DEFAULT)):
        with pytest.raises(DefinitionError) as error:
            make(whole_row=3)
        assert (error.value.code, "whole_rows" in error.value.hint) == ("UNKNOWN_OPTION", True)
    with pytest.raises(DefinitionError) as error:
        Options(zzz=3)
    assert all(f.name in error.value.hint for f in fields(Options))


def test_one_name_is_a_set_of_names():
    assert Options(disable="key_lookup").disable == {"key_lookup"}


def test_unknown_optimisations_are_named():
    with pytest.raises(DefinitionError) as error:
        with_disabled(DEFAULT, {"look_ups"})

    assert (error.value.code, "key_lookup" in error.value.hint) == ("UNKNOWN_OPTION", True)


def test_something_else_is_no_options():
    with pytest.raises(DefinitionError) as error:
        with_disabled({"whole_rows": 1}, ())

    assert error.value.code == "BAD_OPTION"


def test_unknown_regimes_are_named():
    with pytest.raises(DefinitionError) as error:
        regime("lookups")

    assert (error.value.code, "look-ups" in error.value.hint) == ("UNKNOWN_REGIME", True)


def test_regimes_are_drawn_evenly():
    assert {drawn(f"case {n}") for n in range(200)} == set(REGIMES)


def test_the_column_cache_takes_no_more_than_a_16th_of_the_memory():
    assert DEFAULT.cache_bytes <= memory_bytes() // 16
    assert Options(column_cache_bytes=5).cache_bytes == 5


def test_the_page_of_options_says_what_the_code_says():
    script = Path(__file__).parents[2] / "scripts" / "options_page.py"

    assert subprocess.run([sys.executable, script, "--check"], check=False).returncode == 0, f"run `python {script}`"


def test_little_memory_lowers_what_the_driver_holds():
    half = Options(commit_rows=10).within(ENOUGH_MEMORY // 2)

    assert half.driver_change_rows == DEFAULT.driver_change_rows // 2
    assert half.commit_rows == 5
    assert half.cache_bytes == ENOUGH_MEMORY // 32
    assert half.state_rows == DEFAULT.state_rows


def test_limits_that_were_given_stay():
    half = Options(commit_rows=10, column_cache_bytes=7).within(ENOUGH_MEMORY // 2, only_defaults=True)

    assert (half.commit_rows, half.column_cache_bytes) == (10, 7)
    assert half.driver_change_rows == DEFAULT.driver_change_rows // 2


@pytest.mark.parametrize(
    ("groups", "files", "found"),
    [
        ("", {}, []),
        ("", {"memory.max": "100"}, [100]),
        ("0::/a/b", {"memory.max": "max", "a/memory.max": "50", "a/b/memory.max": "70", "c/memory.max": "1"}, [70, 50]),
        ("0::/", {"memory.max": "100"}, [100]),
        ("0::/gone", {"memory.max": "100"}, [100]),
        (
            "5:cpu:/z\n4:cpuset,memory:/a\n0::/",
            {
                "memory/memory.limit_in_bytes": "9",
                "memory/a/memory.limit_in_bytes": "5",
                "memory/z/memory.limit_in_bytes": "1",
            },
            [9, 5],
        ),
    ],
)
def test_memory_is_bounded_by_every_group_around_the_process(tmp_path, groups, files, found):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    assert [*group_bounds(tmp_path)] == found


def test_enough_memory_changes_nothing():
    assert DEFAULT.within(ENOUGH_MEMORY) is DEFAULT
