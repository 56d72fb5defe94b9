"""The source data and its refresh functions: sane keys, the same for the same seed, as large as asked for."""

from __future__ import annotations

import os

import pytest

from trickle.testing import tpch
from trickle.testing.tpch.draw import Reader

SCALE = float(os.environ.get("TPCH_SCALE", "0.01"))

REFERENCES = {
    "orders": ("customer", "o_custkey = c_custkey"),
    "lineitem of orders": ("orders", "l_orderkey = o_orderkey"),
    "lineitem of partsupp": ("partsupp", "l_partkey = ps_partkey AND l_suppkey = ps_suppkey"),
    "partsupp of part": ("part", "ps_partkey = p_partkey"),
    "partsupp of supplier": ("supplier", "ps_suppkey = s_suppkey"),
    "supplier": ("nation", "s_nationkey = n_nationkey"),
    "customer": ("nation", "c_nationkey = n_nationkey"),
    "nation": ("region", "n_regionkey = r_regionkey"),
}


def contents(sources: tpch.Sources) -> dict[str, list[dict[str, object]]]:
    reader = Reader(sources)
    return {
        table: reader.query(f"SELECT * FROM {table} ORDER BY {', '.join(keys)}").to_pylist()
        for table, keys in tpch.TABLES.items()
    }


def orphans(sources: tpch.Sources) -> list[str]:
    reader = Reader(sources)
    return [
        f"{reference}: no {target} where {condition}"
        for reference, (target, condition) in REFERENCES.items()
        if reader.query(f"SELECT 1 FROM {reference.split()[0]} LEFT ANTI JOIN {target} ON {condition} LIMIT 1").num_rows
    ]


def repeated_keys(sources: tpch.Sources) -> list[str]:
    reader = Reader(sources)
    return [
        table
        for table, keys in tpch.TABLES.items()
        if reader.query(f"SELECT 1 FROM {table} GROUP BY {', '.join(keys)} HAVING count(*) > 1 LIMIT 1").num_rows
    ]


@pytest.mark.parametrize("pattern", ["random", "recent"])
def test_keys_stay_sane_through_cycles_of_changes(tmp_path, pattern):
    sources = tpch.store(scale=SCALE, location=tmp_path)

    for cycle in (1, 2, 3):
        for name in tpch.REFRESH_FUNCTIONS:
            tpch.mutate(sources, tpch.Mutation(pattern=pattern), cycle, only=name)

            assert orphans(sources) == [], f"cycle {cycle} {name}"
        assert repeated_keys(sources) == [], f"cycle {cycle}"


def test_every_refresh_function_commits_once_to_each_of_its_tables(tmp_path):
    from deltalake import DeltaTable

    sources = tpch.store(scale=SCALE, location=tmp_path)

    commits = tpch.mutate(sources, tpch.Mutation(), 1)

    assert [(commit.refresh_function, commit.table) for commit in commits] == [
        ("RF1", "orders"),
        ("RF1", "lineitem"),
        ("RF2", "orders"),
        ("RF2", "lineitem"),
        ("RF3", "lineitem"),
        ("RF3", "customer"),
        ("RF4", "part"),
        ("RF4", "supplier"),
        ("RF4", "partsupp"),
        ("RF4", "nation"),
    ]
    versions = {table: DeltaTable(sources.path(table)).version() for table in tpch.TABLES}
    assert versions == {table: sum(commit.table == table for commit in commits) for table in tpch.TABLES}


def test_the_fourth_refresh_function_updates_inserts_and_deletes(tmp_path):
    from deltalake import DeltaTable

    sources = tpch.store(scale=SCALE, location=tmp_path)

    tpch.mutate(sources, tpch.Mutation(), 1)
    tpch.mutate(sources, tpch.Mutation(), 2)

    for table in ("part", "supplier", "partsupp", "nation"):
        last = DeltaTable(sources.path(table)).history(1)[0]["operationMetrics"]
        changed = [last[f"num_target_rows_{kind}"] for kind in ("inserted", "updated", "deleted")]
        assert all(int(count) > 0 for count in changed), f"{table}: {changed}"


def test_recent_changes_touch_only_the_newest_orders(tmp_path):
    sources = tpch.store(scale=SCALE, location=tmp_path)
    before = contents(sources)

    tpch.mutate(sources, tpch.Mutation(pattern="recent"), 1)

    highest = before["orders"][-1]["o_orderkey"]
    old = [row for row in before["lineitem"] if row["l_orderkey"] <= 0.9 * highest]
    assert contents(sources)["lineitem"][: len(old)] == old


@pytest.mark.spark
@pytest.mark.slow
def test_both_writers_leave_the_same_rows_and_change_feed(spark, tmp_path):
    by_delta_rs = tpch.store(scale=SCALE, location=tmp_path / "delta-rs")
    by_spark = tpch.store(scale=SCALE, location=tmp_path / "spark")

    tpch.mutate(by_delta_rs, tpch.Mutation(), 1)
    tpch.mutate(by_spark, tpch.Mutation(), 1, spark=spark)

    assert contents(by_spark) == contents(by_delta_rs)
    assert changes(by_spark) == changes(by_delta_rs)


def changes(sources: tpch.Sources) -> dict[str, list[tuple[object, ...]]]:
    import pyarrow as pa
    from deltalake import DeltaTable

    feeds = {}
    for table in tpch.TABLES:
        feed = pa.table(
            DeltaTable(sources.path(table)).load_cdf(starting_version=1, allow_out_of_range=True).read_all()
        )
        rows = feed.drop_columns(["_commit_timestamp"]).to_pylist()
        feeds[table] = sorted(tuple(sorted((key, str(value)) for key, value in row.items())) for row in rows)
    return feeds
