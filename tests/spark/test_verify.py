"""What verify finds, and what it reads for it."""

from __future__ import annotations

import pytest

from trickle import Trickle
from trickle.model.definition import SourceVersion
from trickle.model.keys import ForeignKey, TableKeys
from trickle.refresh.audit import broken_keys
from trickle.testing.memory import MemorySource


@pytest.fixture
def measures(spark):
    """A table of doubles whose sum depends on their order, in a schema of its own."""
    spark.sql("CREATE DATABASE measures")
    spark.sql("USE measures")
    spark.sql("CREATE TABLE readings (id INT, place INT, value DOUBLE) USING delta")
    spark.sql("INSERT INTO readings VALUES (1, 1, 0.1), (2, 1, 0.2), (3, 1, 0.3)")
    yield Trickle(spark)
    spark.sql("USE default")
    spark.sql("DROP DATABASE measures CASCADE")


def test_broken_keys_are_not_ok_though_the_rows_differ_only_in_the_last_digit(spark, measures):
    table = measures.create("sums", "SELECT place, sum(value) AS total FROM readings GROUP BY place")
    measures.declare("readings", primary_key="id")
    spark.sql("INSERT INTO readings VALUES (3, 2, 1.5)")
    # Another order of adding: 0.6 or 0.6000000000000001.
    table.refresh(full=True)
    (total,) = (row["total"] for row in table.to_df().where("place = 1").collect())
    other = 0.6 if total != 0.6 else 0.6000000000000001
    spark.sql(f"UPDATE sums SET total = {other!r} WHERE place = 1")

    report = measures.verify("sums")

    assert (report.missing, report.extra) == (0, 0)
    assert report.broken_keys == ("readings.id is 3 in 2 rows",)
    assert not report.ok


def test_the_audit_asks_for_the_columns_that_it_reads(spark):
    places = MemorySource(spark, "places", "id INT, name STRING", [(1, "Oslo")])
    readings = MemorySource(spark, "readings", "id INT, place INT, value INT", [(1, 1, 5), (2, 7, 5)])
    places.declared = TableKeys(primary=("id",), foreign=())
    key = ForeignKey(columns=("place",), table=places.identity(0), name="places")
    readings.declared = TableKeys(primary=("id",), foreign=(key,))
    sources = {"places": places, "readings": readings}
    at = {name: SourceVersion(version=0, identity=source.identity(0)) for name, source in sources.items()}
    asked = {}
    for source in sources.values():
        give = source.snapshot

        def noted(version, columns=(), *, name=source.name, give=give):
            asked[name] = columns
            frame = give(version, columns)
            assert tuple(frame.columns) == columns
            return frame

        source.snapshot = noted

    assert list(broken_keys(sources, at)) == ["readings.place has 7, which places does not have"]
    assert asked == {"places": ("id",), "readings": ("id", "place")}
