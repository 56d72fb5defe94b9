"""The fixture tables: few, small, and awkward on purpose.

Each has its schema, its first rows, and a way to draw more rows from small domains, so that joins meet, groups
collide and duplicates happen. First rows of different tables are partners of each other (``orders`` 1 and its
items, ``dept`` 1 and its people), so that deleting the first row of every table deletes both sides of a match.

    dept      1 ── n  emp (dept_id may be null or dangling; boss_id < id, so bosses form a forest)
    orders    1 ── n  items (order_id may be null or dangling; equal rows happen)
    prices    one product, several validity ranges; until is null for the open one
    edges     src < dst always, so there is no cycle; equal rows happen
    bag_a, bag_b, bag_c   two nullable ints with duplicates
    docs      arrays, structs, JSON text, binary, timestamps, doubles with NaN and -0.0
    prefs     a map, which cannot be compared or grouped
    weights   doubles whose sums have other last digits when they are added in another order
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

Row = tuple[Any, ...]
NAN: Final = float("nan")  # one object: rows that hold it compare equal by identity


@dataclass(frozen=True)
class Table:
    """A fixture table.

    Attributes:
        ddl: Columns and types.
        rows: The rows at version 0.
        keys: Columns that joins and groups go by; an update of a key changes these.
        values: Columns that are summed, sorted and shown.
        draw: Gives a new row; the number is different at every call.
        unique: Whether no two rows may be equal in the first column.
        repair: Makes a row whose keys were changed acceptable again.
    """

    name: str
    ddl: str
    rows: tuple[Row, ...]
    keys: tuple[str, ...]
    values: tuple[str, ...]
    draw: Callable[[Random, int], Row]
    unique: bool = False
    repair: Callable[[Row], Row] = lambda row: row

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        parts, depth, part = [], 0, ""
        for char in self.ddl:
            depth += (char in "<(") - (char in ">)")
            if char == "," and not depth:
                parts.append(part)
                part = ""
            else:
                part += char
        return tuple(part.split()[0] for part in [*parts, part])


def _money(text: str | int) -> Decimal:
    return Decimal(text).quantize(Decimal("0.01"))


def _below_itself(row: Row) -> Row:
    """Keep bosses a forest: a boss was hired before."""
    number, name, dept_id, boss_id, salary, hired = row
    if boss_id is not None and boss_id >= number:
        boss_id = None
    return (number, name, dept_id, boss_id, salary, hired)


def _draw_edge(rng: Random, _: int) -> Row:
    src, dst = sorted(rng.sample("abcdefgh", 2))
    return (src, dst, rng.randint(1, 5))


def _draw_bag(rng: Random, _: int) -> Row:
    return (rng.choice([1, 2, 3, 4, 5, None]), rng.choice([10, 20, 30, None]))


def _draw_doc(rng: Random, number: int) -> Row:
    tags = rng.choice([["red"], ["red", "blue"], [], None, ["blue", None, "blue"], ["green"]])
    parts = [(rng.choice(["nut", "bolt", None]), rng.randint(1, 4)) for _ in range(rng.randint(0, 3))]
    body = (
        f'{{"user": "{rng.choice(["ada", "bo"])}", "n": {rng.randint(1, 9)}, '
        f'"lines": [{{"sku": "{rng.choice(["nut", "bolt"])}", "qty": {rng.randint(1, 4)}}}]}}'
    )
    raw = rng.choice([b"\x00\x01", b"", None, b"\xff"])
    at = datetime(2024, 3, rng.randint(1, 5), rng.randint(0, 23), 30)
    score = rng.choice([0.0, -0.0, NAN, None, 1.5, 2.25])
    lo = rng.randint(1, 4)
    return (number, tags, parts, body, raw, at, score, (lo, lo + rng.randint(0, 3)))


DEPT: Final = Table(
    name="dept",
    ddl="id INT, name STRING, city STRING, budget DECIMAL(12,2)",
    rows=(
        (1, "eng", "Oslo", _money(1000)),
        (2, "ops", "Bern", _money(500)),
        (3, "law", "Oslo", None),
        (4, "art", None, _money(200)),
        (5, "hr", "Bern", _money(500)),
    ),
    keys=("city",),
    values=("name", "budget"),
    draw=lambda rng, n: (
        n % 20 + 6,
        rng.choice(["eng", "lab", "pr"]),
        rng.choice(["Oslo", "Bern", "Rome", None]),
        rng.choice([_money(100), _money(500), _money(900), None]),
    ),
    unique=True,
)

EMP: Final = Table(
    name="emp",
    ddl="id INT, name STRING, dept_id INT, boss_id INT, salary DECIMAL(10,2), hired DATE",
    rows=(
        (1, "ann", 1, None, _money(900), date(2020, 1, 1)),
        (2, "bob", 1, 1, _money(700), date(2020, 3, 1)),
        (3, "cid", 1, 1, _money(700), date(2021, 6, 1)),
        (4, "dan", 2, 1, None, date(2021, 6, 1)),
        (5, "eve", 2, 2, _money(400), date(2022, 2, 1)),
        (6, "fay", None, 2, _money(650), date(2022, 2, 9)),
        (7, "gus", 3, 3, _money(500), None),
        (8, "hal", 9, 4, _money(300), date(2023, 1, 5)),
        (9, "ann", 4, 5, _money(900), date(2023, 4, 1)),
        (10, "ida", 2, 2, _money(400), date(2023, 4, 1)),
    ),
    keys=("dept_id", "boss_id"),
    values=("salary", "hired"),
    draw=lambda rng, n: (
        n,
        rng.choice(["ann", "kim", "lou"]),
        rng.choice([1, 2, 3, 5, 9, None]),
        rng.choice([1, 2, 3, 5, 9, None]),
        rng.choice([_money(400), _money(700), _money(950), None]),
        date(2023, rng.randint(1, 12), 1),
    ),
    unique=True,
    repair=_below_itself,
)

ORDERS: Final = Table(
    name="orders",
    ddl="id INT, customer STRING, day DATE, status STRING, amount DECIMAL(10,2)",
    rows=(
        (1, "Ada", date(2024, 1, 1), "paid", _money(120)),
        (2, "ada", date(2024, 1, 1), "open", _money(80)),
        (3, "Bo", date(2024, 1, 2), "paid", _money(80)),
        (4, "Bo", date(2024, 1, 3), "void", None),
        (5, None, date(2024, 1, 3), "open", _money(15)),
        (6, "Cy", None, "paid", _money(60)),
        (7, "Ada", date(2024, 1, 4), "paid", _money(45)),
        (8, "Cy", date(2024, 1, 5), None, _money(200)),
        (9, "Bo", date(2024, 1, 5), "paid", _money(80)),
        (10, "Ada", date(2024, 1, 5), "open", _money(10)),
    ),
    keys=("customer", "status", "day"),
    values=("amount",),
    draw=lambda rng, n: (
        n,
        rng.choice(["Ada", "ada", "Bo", "Cy", "Di", None]),
        date(2024, 1, rng.randint(1, 7)),
        rng.choice(["paid", "open", "void", None]),
        rng.choice([_money(10), _money(80), _money(150), _money(300), None]),
    ),
    unique=True,
)

ITEMS: Final = Table(
    name="items",
    ddl="order_id INT, product STRING, qty INT, price DECIMAL(8,2)",
    rows=(
        (1, "nut", 4, _money(2)),
        (1, "nut", 4, _money(2)),
        (1, "bolt", 1, _money(5)),
        (1, "gear", 2, _money(50)),
        (2, "gear", 1, _money(55)),
        (3, "nut", 4, _money(3)),
        (3, "bolt", 6, _money(4)),
        (3, "cam", None, _money(9)),
        (4, None, 2, _money(7)),
        (7, "cam", 5, _money(9)),
        (9, "bolt", 3, None),
        (None, "nut", 1, _money(2)),
        (99, "cam", 2, _money(9)),
    ),
    keys=("order_id", "product"),
    values=("qty", "price"),
    draw=lambda rng, _: (
        rng.choice([1, 2, 3, 5, 6, 7, 9, 10, 99, None]),
        rng.choice(["nut", "bolt", "gear", "cam", None]),
        rng.choice([1, 2, 4, 6, None]),
        rng.choice([_money(2), _money(5), _money(9), _money(55), None]),
    ),
)

EVENTS: Final = Table(
    name="events",
    ddl="id INT, who STRING, at TIMESTAMP, kind STRING, val INT",
    rows=(
        (1, "ada", datetime(2024, 3, 1, 10, 0), "in", 5),
        (2, "ada", datetime(2024, 3, 1, 10, 4), "click", None),
        (3, "ada", datetime(2024, 3, 1, 10, 30), "click", 7),
        (4, "bo", datetime(2024, 3, 1, 10, 4), "in", 5),
        (5, "bo", datetime(2024, 3, 1, 10, 4), "click", 2),
        (6, "bo", datetime(2024, 3, 1, 11, 0), "out", 2),
        (7, "cy", datetime(2024, 3, 1, 9, 59), "in", -3),
        (8, None, datetime(2024, 3, 1, 12, 0), "in", 1),
        (9, "ada", datetime(2024, 3, 1, 10, 45), "out", 9),
        (10, "cy", datetime(2024, 3, 2, 0, 0), "out", 5),
    ),
    keys=("who", "kind"),
    values=("at", "val"),
    draw=lambda rng, n: (
        n,
        rng.choice(["ada", "bo", "cy", "di", None]),
        datetime(2024, 3, rng.randint(1, 2), rng.randint(9, 12), rng.choice([0, 4, 10, 30])),
        rng.choice(["in", "out", "click"]),
        rng.choice([1, 2, 5, 5, 8, -1, None]),
    ),
    unique=True,
)

EDGES: Final = Table(
    name="edges",
    ddl="src STRING, dst STRING, cost INT",
    rows=(
        ("a", "b", 1),
        ("a", "c", 4),
        ("b", "c", 1),
        ("b", "d", 5),
        ("c", "d", 1),
        ("c", "d", 1),
        ("d", "e", 2),
        ("f", "g", 1),
        ("g", "h", None),
        (None, "g", 2),
    ),
    keys=("src", "dst"),
    values=("cost",),
    draw=_draw_edge,
)

DOCS: Final = Table(
    name="docs",
    ddl=(
        "id INT, tags ARRAY<STRING>, parts ARRAY<STRUCT<sku: STRING, qty: INT>>, body STRING, raw BINARY, "
        "at TIMESTAMP, score DOUBLE, span STRUCT<lo: INT, hi: INT>"
    ),
    rows=(
        (
            1,
            ["red", "blue"],
            [("nut", 2), ("bolt", 1)],
            '{"user": "ada", "n": 1, "lines": [{"sku": "nut", "qty": 2}, {"sku": "nut", "qty": 3}]}',
            b"\x00\x01",
            datetime(2024, 3, 1, 8, 0),
            0.0,
            (1, 3),
        ),
        (
            2,
            [],
            [],
            '{"user": "bo", "n": 2, "lines": []}',
            b"",
            datetime(2024, 3, 1, 9, 30),
            -0.0,
            (2, 2),
        ),
        (
            3,
            None,
            None,
            '{"user": "ada", "n": 5, "lines": [{"sku": "bolt", "qty": 1}]}',
            None,
            datetime(2024, 3, 2, 8, 0),
            NAN,
            (4, 5),
        ),
        (
            4,
            ["red", None, "red"],
            [("nut", 1), (None, 7)],
            '{"user": null, "n": null}',
            b"\xff",
            None,
            NAN,
            None,
        ),
        (5, ["green"], [("gear", 1)], None, b"\x00\x01", datetime(2024, 3, 2, 8, 0), None, (1, 1)),
        (
            6,
            ["blue", "green"],
            [("bolt", 1), ("bolt", 1)],
            '{"user": "bo", "n": 4, "lines": [{"sku": "nut", "qty": 1}]}',
            None,
            datetime(2024, 3, 3, 23, 30),
            1.5,
            (None, 4),
        ),
    ),
    keys=("tags", "span", "score"),
    values=("parts", "body", "at", "raw"),
    draw=_draw_doc,
    unique=True,
)

PREFS: Final = Table(
    name="prefs",
    ddl="id INT, options MAP<STRING, INT>",
    rows=(
        (1, {"x": 1, "y": 2}),
        (2, {"x": 3}),
        (3, {}),
        (4, None),
        (5, {"y": 2, "z": None}),
    ),
    keys=("options",),
    values=("options",),
    draw=lambda rng, n: (n, rng.choice([{"x": rng.randint(1, 4)}, {"y": 2, "x": 1}, {}, None, {"z": 9}])),
    unique=True,
)

BAG_A: Final = Table(
    name="bag_a",
    ddl="k INT, v INT",
    rows=((1, 10), (1, 10), (1, 20), (2, 10), (2, None), (3, 30), (None, 10), (None, None), (4, 20), (4, 20)),
    keys=("k",),
    values=("v",),
    draw=_draw_bag,
)

BAG_B: Final = Table(
    name="bag_b",
    ddl="k INT, v INT",
    rows=((1, 10), (1, 20), (2, 20), (3, 30), (3, 30), (None, 10), (5, 10), (4, 20)),
    keys=("k",),
    values=("v",),
    draw=_draw_bag,
)

BAG_C: Final = Table(
    name="bag_c",
    ddl="k INT, v INT",
    rows=((1, 10), (2, 10), (2, 10), (3, None), (None, None), (6, 60)),
    keys=("k",),
    values=("v",),
    draw=_draw_bag,
)

PRICES: Final = Table(
    name="prices",
    ddl="product STRING, price DECIMAL(8,2), since DATE, until DATE",
    rows=(
        ("nut", _money(2), date(2023, 1, 1), date(2024, 1, 2)),
        ("nut", _money(3), date(2024, 1, 3), None),
        ("bolt", _money(4), date(2023, 6, 1), date(2024, 1, 4)),
        ("bolt", _money(5), date(2024, 1, 5), None),
        ("cam", _money(9), date(2024, 1, 2), date(2024, 1, 3)),
        ("gear", _money(50), date(2024, 1, 1), None),
    ),
    keys=("product", "since"),
    values=("price", "until"),
    draw=lambda rng, _: (
        rng.choice(["nut", "bolt", "cam", "rod"]),
        _money(rng.choice([1, 6, 8])),
        date(2024, 1, rng.randint(1, 3)),
        rng.choice([date(2024, 1, 4), None]),
    ),
)

SALES: Final = Table(
    name="sales",
    ddl="region STRING, quarter STRING, product STRING, amount INT",
    rows=(
        ("north", "q1", "nut", 10),
        ("north", "q1", "nut", 10),
        ("north", "q2", "bolt", 20),
        ("north", None, "nut", 5),
        ("south", "q1", "bolt", 7),
        ("south", "q2", "nut", None),
        (None, "q1", "nut", 3),
        (None, None, "bolt", 8),
        ("east", "q3", "gear", 40),
    ),
    keys=("region", "quarter", "product"),
    values=("amount",),
    draw=lambda rng, _: (
        rng.choice(["north", "south", "east", None]),
        rng.choice(["q1", "q2", "q3", None]),
        rng.choice(["nut", "bolt"]),
        rng.choice([1, 5, 10, 20, None]),
    ),
)

READINGS: Final = Table(
    name="readings",
    ddl="sensor STRING, q1 INT, q2 INT, q3 INT",
    rows=(
        ("s1", 1, 2, 3),
        ("s2", None, 5, None),
        ("s3", None, None, None),
        ("s1", 4, None, 3),
        (None, 7, 7, 7),
    ),
    keys=("sensor",),
    values=("q1", "q2", "q3"),
    draw=lambda rng, _: (
        rng.choice(["s1", "s2", "s4", None]),
        *(rng.choice([1, 3, 5, None]) for _ in range(3)),
    ),
)

WEIGHTS: Final = Table(
    name="weights",
    ddl="bin INT, id INT, x DOUBLE",
    rows=(
        (1, 1, 0.1),
        (1, 2, 0.2),
        (1, 3, 0.3),
        (2, 4, 0.7),
        (2, 5, 1000.1),
        (2, 6, 0.1),
        (3, 7, -0.3),
        (3, 8, 1e-3),
        (None, 9, 2.2),
        (None, 9, 2.2),
        (4, 10, None),
        (5, 11, 1e9 / 3),
        (5, 12, 1e-9),
    ),
    keys=("bin",),
    values=("x",),
    # Sums of different bins are different, by more than their last digits.
    draw=lambda rng, number: (rng.choice([1, 2, 3, 4, None]), number, number * 0.1 + rng.choice([0.7, 1.3, 1e-3])),
)

TABLES: Final[Mapping[str, Table]] = MappingProxyType(
    {
        table.name: table
        for table in (
            DEPT,
            EMP,
            ORDERS,
            ITEMS,
            EVENTS,
            EDGES,
            DOCS,
            PREFS,
            BAG_A,
            BAG_B,
            BAG_C,
            PRICES,
            SALES,
            READINGS,
            WEIGHTS,
        )
    }
)
