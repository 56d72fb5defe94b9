"""The tables of a soak: four base tables, thirty stream tables in four levels, and what a redeploy changes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from trickle.model.spec import Spec
from trickle.model.table_options import TableOptionWords

_FEED: Final = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
BASES: Final[Mapping[str, str]] = {
    "customers": """USING delta AS SELECT id, element_at(array('north', 'east', 'south'), CAST(1 + id % 3 AS INT)) AS region,
        id % 4 AS tier FROM range(200)""",
    "products": "USING delta AS SELECT id, concat('category ', id % 9) AS category, 5 + id % 40 AS cost FROM range(100)",
    "orders": f"""USING delta {_FEED} AS SELECT id, pmod(hash(id), 220) AS customer, id % 30 AS day,
        IF(id % 50 = 0, NULL, id % 100) AS amount, element_at(array('open', 'paid', 'sent'), CAST(1 + id % 3 AS INT)) AS status
        FROM range(2000)""",
    "items": f"""USING delta {_FEED} AS SELECT id % 2000 AS order_id, pmod(hash(id), 110) AS product, 1 + id % 5 AS quantity,
        CAST(1 + id % 700 / 10 AS DECIMAL(10, 2)) AS price FROM range(4000)""",
}

QUERIES: Final[Mapping[str, str]] = {
    # Over the base tables.
    "o_day": "SELECT day, count(*) AS n, sum(amount) AS total FROM orders GROUP BY day",
    "o_customer": "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer",
    "o_open": "SELECT id, customer, day, amount FROM orders WHERE status = 'open'",
    "o_named": "SELECT o.id, c.region, c.tier, o.day, o.amount FROM orders o JOIN customers c ON o.customer = c.id",
    "o_recent": "SELECT id, day, amount FROM orders ORDER BY day DESC, id DESC LIMIT 20",
    "c_region": "SELECT region, count(*) AS n, max(tier) AS tier FROM customers GROUP BY region",
    "i_product": "SELECT product, sum(quantity) AS sold, count(*) AS n FROM items GROUP BY product",
    "i_order": "SELECT order_id, sum(quantity * price) AS value, count(*) AS n FROM items GROUP BY order_id",
    "i_wide": "SELECT i.order_id, p.category, i.quantity FROM items i JOIN products p ON i.product = p.id",
    "p_cost": "SELECT category, min(cost) AS low, max(cost) AS high, count(*) AS n FROM products GROUP BY category",
    # Over these.
    "r_total": """SELECT coalesce(c.region, '?') AS region, sum(o.total) AS total, sum(o.n) AS n
        FROM o_customer o LEFT JOIN customers c ON o.customer = c.id GROUP BY coalesce(c.region, '?')""",
    "d_region": "SELECT region, day, sum(amount) AS total FROM o_named GROUP BY region, day",
    "c_best": "SELECT customer, total FROM o_customer ORDER BY total DESC, customer LIMIT 10",
    "open_customer": "SELECT customer, sum(amount) AS total, count(*) AS n FROM o_open GROUP BY customer",
    "cat_sold": "SELECT category, sum(quantity) AS sold FROM i_wide GROUP BY category",
    "order_value": "SELECT o.id, o.region, i.value FROM o_named o JOIN i_order i ON o.id = i.order_id",
    "product_rank": """SELECT category, id, sold, rank() OVER (PARTITION BY category ORDER BY sold DESC) AS place
        FROM products JOIN i_product ON id = product""",
    "not_open": "SELECT id, region FROM customers c WHERE NOT EXISTS (SELECT 1 FROM o_open o WHERE o.customer = c.id)",
    # Over those.
    "all_total": "SELECT sum(total) AS total, sum(n) AS n FROM r_total",
    "region_value": "SELECT region, sum(value) AS value, count(*) AS n FROM order_value GROUP BY region",
    "day_rank": "SELECT region, day, total, dense_rank() OVER (PARTITION BY region ORDER BY total DESC) AS place FROM d_region",
    "region_open": """SELECT c.region, sum(o.total) AS total, sum(o.n) AS n
        FROM open_customer o JOIN customers c ON o.customer = c.id GROUP BY c.region""",
    "best_named": "SELECT b.customer, c.region, b.total FROM c_best b LEFT JOIN customers c ON b.customer = c.id",
    "cat_share": "SELECT s.category, s.sold, p.low, p.high FROM cat_sold s JOIN p_cost p ON s.category = p.category",
    "both": "SELECT region, n FROM r_total UNION ALL SELECT region, n FROM c_region",
    # And the last level.
    "summary": "SELECT a.total, a.n, r.region, r.total AS open FROM all_total a CROSS JOIN region_open r",
    "sheet": """SELECT coalesce(v.region, o.region) AS region, v.value, o.total
        FROM region_value v FULL JOIN region_open o ON v.region = o.region""",
    "top_region": "SELECT region, value FROM region_value ORDER BY value DESC, region LIMIT 2",
    "busy": "SELECT region, day, total FROM day_rank WHERE place <= 3",
    "both_sums": "SELECT region, sum(n) AS n, count(*) AS parts FROM both GROUP BY region",
}

_OTHERS: Final[Mapping[str, str]] = {
    # The same rows with one column more: who reads the others gets nothing.
    "o_day": "SELECT day, count(*) AS n, sum(amount) AS total, max(amount) AS high FROM orders GROUP BY day",
    "o_customer": "SELECT customer, count(*) AS n, sum(amount) AS total, count(amount) AS known FROM orders GROUP BY customer",
    # Other rows.
    "d_region": "SELECT region, day, sum(amount) AS total FROM o_named WHERE amount > 20 GROUP BY region, day",
    "c_best": "SELECT customer, total FROM o_customer ORDER BY total DESC, customer LIMIT 15",
    "p_cost": "SELECT category, min(cost) AS low, sum(cost) AS high, count(*) AS n FROM products GROUP BY category",
    "busy": "SELECT region, day, total FROM day_rank WHERE place <= 5",
}
_EXTRA: Final = ("extra", "SELECT status, count(*) AS n FROM orders GROUP BY status")

COUNTED: Final = ("o_day", "o_customer", "all_total", "both_sums", "i_product", "i_order")
"""Tables whose rows must agree at one cut, whatever was redeployed."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A set of definitions.

    Attributes:
        other: The tables that have their other query.
        on_clock: The tables that follow the clock, not commits.
        comments: The tables with a comment.
        has_extra: True if there is one table more.
    """

    other: frozenset[str] = frozenset()
    on_clock: frozenset[str] = frozenset()
    comments: frozenset[str] = frozenset()
    has_extra: bool = False

    def next(self, random: Random) -> Deployment:
        """Draw another one, a few changes away."""
        found = self
        for _ in range(random.randint(1, 3)):
            match random.randrange(5):
                case 0 | 1:
                    found = replace(found, other=found.other ^ {random.choice(sorted(_OTHERS))})
                case 2:
                    found = replace(found, on_clock=found.on_clock ^ {random.choice(sorted(QUERIES))})
                case 3:
                    found = replace(found, comments=found.comments ^ {random.choice(sorted(QUERIES))})
                case _:
                    found = replace(found, has_extra=not found.has_extra)
        return found

    def queries(self) -> dict[str, str]:
        """Return the query of each table."""
        found = {name: _OTHERS[name] if name in self.other else query for name, query in QUERIES.items()}
        return {**found, **dict([_EXTRA])} if self.has_extra else found

    def specs(self) -> list[Spec]:
        """Return the definitions."""
        return [
            Spec(
                name,
                query,
                schedule="1s" if name in self.on_clock else "on commit",
                options=TableOptionWords(comment=f"about {name}") if name in self.comments else TableOptionWords(),
            )
            for name, query in self.queries().items()
        ]
