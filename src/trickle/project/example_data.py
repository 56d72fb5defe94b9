"""The data of the example project: customers and their orders, written and changed without Spark."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

CUSTOMERS: Final = 200
_REGIONS: Final = ("north", "south", "east", "west")
_STATUSES: Final = ("open", "paid", "paid", "paid", "cancelled")
_FIRST_DAY: Final = date(2026, 1, 1)
_DAYS: Final = 120
_FEED: Final = {"delta.enableChangeDataFeed": "true"}


def make_data(warehouse: Path, orders: int = 5000, seed: int = 7) -> None:
    """Write the Delta tables ``customers`` and ``orders``."""
    import pyarrow as pa
    from deltalake import write_deltalake

    ids = range(1, CUSTOMERS + 1)
    customers = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [f"customer {number}" for number in ids],
            "region": [_REGIONS[number % len(_REGIONS)] for number in ids],
        }
    )
    write_deltalake(warehouse / "customers", customers, configuration=_FEED)
    rows = _orders(1, orders, random.Random(seed))
    write_deltalake(warehouse / "orders", rows, configuration=_FEED)


def change_orders(warehouse: Path, count: int = 20) -> str:
    """Add orders and delete some; return what was done in words."""
    from deltalake import DeltaTable, write_deltalake

    table = DeltaTable(warehouse / "orders")
    random_of_version = random.Random(table.version())
    first = 1 + max(_maxima(table))
    write_deltalake(table, _orders(first, count, random_of_version), mode="append")
    gone = random_of_version.randrange(first)
    deleted = DeltaTable(warehouse / "orders").delete(f"id BETWEEN {gone} AND {gone + 4}")
    return f"{count} orders more, {deleted['num_deleted_rows']} fewer."


def _maxima(table: Any) -> list[int]:
    """Return the biggest id of each file."""
    import pyarrow as pa

    actions = pa.table(table.get_add_actions(flatten=True))
    return [value for value in actions["max.id"].to_pylist() if value is not None]


def _orders(first: int, count: int, randomness: random.Random) -> Any:
    import pyarrow as pa

    cents = [randomness.randrange(100, 50_000) for _ in range(count)]
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "customer_id": pa.array([randomness.randint(1, CUSTOMERS) for _ in range(count)], pa.int64()),
            "day": [_FIRST_DAY + timedelta(days=randomness.randrange(_DAYS)) for _ in range(count)],
            "amount": pa.array([Decimal(amount) / 100 for amount in cents], pa.decimal128(10, 2)),
            "status": [randomness.choice(_STATUSES) for _ in range(count)],
        }
    )
