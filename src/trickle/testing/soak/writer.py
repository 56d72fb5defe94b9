"""A writer in a process of its own: commits random changes to the base tables, without Spark, until SIGTERM.

``python -m trickle.testing.soak.writer FOLDER SEED RATE`` prints how many commits it made, by what they did.
"""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from random import Random
from threading import Event
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

_REGIONS: Final = ("north", "east", "south", "west")
_STATUS: Final = ("open", "paid", "sent")
_BIG: Final = 20
"""One insert in so many brings some hundred rows."""


class Writer:
    """Changes base tables at random."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Start after the rows that are there."""
        self._folder = folder
        self._random = Random(seed)
        self._next_id = 1_000_000
        self._changes: Mapping[str, Callable[[], None]] = {
            "insert orders": self._insert_orders,
            "insert items": self._insert_items,
            "update orders": self._update_orders,
            "update items": lambda: self._update("items", "product", {"quantity": "quantity + 1"}, 110),
            "update customers": self._update_customers,
            "update products": lambda: self._update("products", "id", {"cost": "cost + 1"}, 110),
            "delete orders": lambda: self._delete("orders", "id", 499),
            "delete items": lambda: self._delete("items", "order_id", 499),
            "compact": self._compact,
        }
        self._weights = (9, 9, 4, 3, 1, 1, 2, 2, 1)

    def change(self) -> str:
        """Make one commit, or none if nothing fits; return what kind of change it was."""
        (what,) = self._random.choices(list(self._changes), self._weights)
        self._changes[what]()
        return what

    def _count(self) -> int:
        return self._random.randint(100, 300) if not self._random.randrange(_BIG) else self._random.randint(1, 5)

    def _ids(self, count: int) -> list[int]:
        self._next_id += count
        return list(range(self._next_id - count, self._next_id))

    def _insert_orders(self) -> None:
        draw, ids = self._random, self._ids(self._count())
        rows = {
            "id": pa.array(ids, pa.int64()),
            "customer": pa.array([draw.randrange(220) for _ in ids], pa.int32()),
            "day": pa.array([draw.randrange(30) for _ in ids], pa.int64()),
            "amount": pa.array(
                [draw.choice((None, draw.randrange(100), draw.randrange(100))) for _ in ids], pa.int64()
            ),
            "status": pa.array([draw.choice(_STATUS) for _ in ids]),
        }
        self._append("orders", rows)

    def _insert_items(self) -> None:
        draw, ids = self._random, self._ids(self._count())
        rows = {
            "order_id": pa.array([draw.randrange(2200) for _ in ids], pa.int64()),
            "product": pa.array([draw.randrange(110) for _ in ids], pa.int32()),
            "quantity": pa.array([draw.randint(1, 5) for _ in ids], pa.int64()),
            "price": pa.array([Decimal(draw.randrange(100, 9000)) / 100 for _ in ids], pa.decimal128(10, 2)),
        }
        self._append("items", rows)

    def _update_orders(self) -> None:
        value = self._random.choice(("amount + 1", "NULL", "7"))
        status = self._random.choice(_STATUS)
        self._update("orders", "id", {"amount": f"CAST({value} AS BIGINT)", "status": f"'{status}'"}, 397)

    def _update_customers(self) -> None:
        self._update("customers", "id", {"region": f"'{self._random.choice(_REGIONS)}'"}, 67)

    def _append(self, table: str, rows: Mapping[str, pa.Array]) -> None:
        write_deltalake(str(self._folder / table), pa.table(dict(rows)), mode="append")

    def _update(self, table: str, key: str, values: dict[str, str], share: int) -> None:
        found = f"{key} % {share} = {self._random.randrange(share)}"
        DeltaTable(str(self._folder / table)).update(predicate=found, updates=values)

    def _delete(self, table: str, key: str, share: int) -> None:
        DeltaTable(str(self._folder / table)).delete(f"{key} % {share} = {self._random.randrange(share)}")

    def _compact(self) -> None:
        DeltaTable(str(self._folder / self._random.choice(("orders", "items")))).optimize.compact()


def main(folder: str, seed: str, rate: str) -> None:
    """Write until SIGTERM."""
    stopped, done = Event(), Counter[str]()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    writer, random = Writer(Path(folder), int(seed)), Random(int(seed))
    while not stopped.wait(random.expovariate(float(rate))):
        done[writer.change()] += 1
    sys.stdout.write(json.dumps(done) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
