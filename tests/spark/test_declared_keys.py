"""Keys declared of sources: fewer rows are searched for, the result is the same, and what does not hold is said."""

from __future__ import annotations

import pytest

from trickle import DefinitionError, SourceError, Trickle
from trickle.tables.delta.source import DeltaSource

LINES = """
SELECT o.day, l.order_id, l.n, l.price, c.name
FROM orders o JOIN lines l ON l.order_id = o.id JOIN customers c ON c.id = o.customer
"""
PER_ORDER = """
SELECT o.id, max(l.price) AS most FROM orders o LEFT JOIN lines l ON l.order_id = o.id GROUP BY o.id
"""


@pytest.fixture
def shop(spark):
    """Customers, orders and lines with their keys declared."""
    spark.sql("CREATE DATABASE keyed")
    spark.sql("USE keyed")
    spark.sql("CREATE TABLE customers (id INT, name STRING) USING delta")
    spark.sql("CREATE TABLE orders (id INT, customer INT, day DATE) USING delta")
    spark.sql("CREATE TABLE lines (order_id INT, n INT, price DECIMAL(10,2)) USING delta")
    spark.sql("INSERT INTO customers SELECT id, concat('c', id) FROM range(5)")
    spark.sql("INSERT INTO orders SELECT id, id % 5, DATE'2026-01-01' + int(id % 7) FROM range(40)")
    spark.sql("INSERT INTO lines SELECT o.id, l.id, o.id * 10 + l.id FROM range(40) o, range(3) l")
    trickle = Trickle(spark)
    trickle.declare("customers", primary_key="id")
    trickle.declare("orders", primary_key="ID", foreign_key={"customer": "customers"})
    trickle.declare("lines", primary_key=("order_id", "n"), foreign_key={"order_id": "keyed.orders"})
    yield trickle
    spark.sql("USE default")
    spark.sql("DROP DATABASE keyed CASCADE")


def test_only_rows_that_the_changes_do_not_tell_are_searched_for(spark, shop, monkeypatch):
    for name, query in (("by_line", LINES), ("by_order", PER_ORDER)):
        shop.create(name, query, mode="differential")
    spark.sql("INSERT INTO orders VALUES (100, 1, DATE'2026-02-01'), (101, 2, DATE'2026-02-01')")
    spark.sql("INSERT INTO lines VALUES (100, 0, 7), (100, 1, 8)")
    spark.sql("DELETE FROM lines WHERE order_id IN (3, 4)")
    spark.sql("DELETE FROM orders WHERE id IN (3, 4)")
    spark.sql("UPDATE orders SET day = DATE'2026-03-01' WHERE id = 9")
    spark.sql("UPDATE lines SET price = price + 1 WHERE order_id = 12 AND n = 1")
    searched = []
    find = DeltaSource.find

    def noted(self, version, columns, keys):
        searched.append((self.name, {n: sorted(v.to_pylist()) for n, v in keys.items()}))
        return find(self, version, columns, keys)

    monkeypatch.setattr(DeltaSource, "find", noted)
    for name in ("by_line", "by_order"):
        searched.clear()
        assert shop.refresh(name).mode == "differential"
        by_order = [keys["order_id"] for source, keys in searched if source == "lines" and "order_id" in keys]
        assert by_order, searched
        assert all(set(keys) <= {9, 12} for keys in by_order), searched
        assert shop.verify(name).ok
    plain = Trickle(spark, disable={"declared_keys"})
    assert plain.verify("by_line").ok
    shown = plain.explain("by_line")
    assert "which is identified by id, refers to customers by customer" in shown
    assert "switched off: declared_keys" in shown


def test_a_key_that_does_not_hold_ends_a_refresh_or_is_found_by_verify(spark, shop):
    shop.create("by_line", LINES, mode="differential")
    spark.sql("INSERT INTO orders VALUES (100, 1, DATE'2026-02-01'), (100, 2, DATE'2026-02-01')")
    with pytest.raises(SourceError, match="KEY_VIOLATED"):
        shop.refresh("by_line")
    spark.sql("DELETE FROM orders WHERE id = 100")
    spark.sql("INSERT INTO lines VALUES (200, 1, 5)")
    assert shop.refresh("by_line").mode == "differential"

    report = shop.verify("by_line")

    assert not report.ok
    assert report.missing == report.extra == 0
    assert report.broken_keys == ("lines.order_id has 200, which orders does not have",)
    shop.declare("lines")
    assert shop.verify("by_line").ok


def test_what_cannot_be_declared(spark, shop):
    spark.sql("CREATE VIEW a_view AS SELECT * FROM orders")
    for code, table, keys in (
        ("UNKNOWN_COLUMN", "orders", {"primary_key": "nix"}),
        ("UNKNOWN_COLUMN", "orders", {"primary_key": 5}),
        ("UNKNOWN_SOURCE", "nowhere", {"primary_key": "id"}),
        ("UNSUPPORTED_SOURCE", "a_view", {"primary_key": "id"}),
        ("KEY_VIOLATED", "lines", {"primary_key": "order_id"}),
        ("KEY_VIOLATED", "orders", {"foreign_key": {"id": "customers"}}),
        ("NO_PRIMARY_KEY", "orders", {"foreign_key": {"customer": "orders"}}),
        ("BAD_FOREIGN_KEY", "orders", {"foreign_key": {"day": "customers"}}),
        ("BAD_FOREIGN_KEY", "orders", {"foreign_key": {("id", "customer"): "customers"}}),
    ):
        with pytest.raises(DefinitionError, match=code):
            shop.declare(table, **keys)


def test_renamed_columns_keep_their_keys_and_bad_properties_are_said(spark, shop):
    spark.sql("ALTER TABLE orders SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql("ALTER TABLE orders RENAME COLUMN id TO number")
    source = DeltaSource(spark, "orders", spark.sql("DESCRIBE DETAIL orders").first()["location"])
    assert source.keys(source.head()).primary == ("number",)

    spark.sql("ALTER TABLE orders SET TBLPROPERTIES ('trickle.keys' = 'nonsense')")

    with pytest.raises(SourceError, match="BAD_KEYS"):
        source.keys(source.head())
