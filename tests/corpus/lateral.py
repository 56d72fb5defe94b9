"""LATERAL subqueries in all their forms."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from .case import Case, Way, case
from .rounds import step

TOP_N = Way(
    "decorrelated into a ranking within each correlation key and a join; keys touched on either side are ranked again",
    "inner rows of the touched keys",
)
AGGREGATED = Way(
    "decorrelated into an aggregate by the correlation key and an outer join",
    "inner rows of the touched keys, outer rows of those keys",
)
JOINED = Way("decorrelated into a join", "the matches of the changed rows")
PADDED = Way(
    "decorrelated into a left join; a key that gains its first or loses its last match swaps its padded row",
    "the matches of the touched keys",
)
PAIRED = Way(
    "without an equality to correlate by, the distinct outer values are paired with the inner table",
    "the inner table against the changed outer values; the outer values against the changed inner rows",
)
SET_INSIDE = Way("decorrelated under the set operation, then as that operation by key", "rows of the touched keys")
WINDOW_INSIDE = Way("the window is recomputed for the touched correlation keys", "inner rows of the touched keys")
CHAINED = Way(
    "each LATERAL is a join over the result of the ones before it", "the matches of the touched keys, per link"
)
EXPANDED = Way("each changed row is expanded alone", "changed rows only")

CASES: tuple[Case, ...] = (
    case(
        "LATERAL top-N per outer row",
        """
        SELECT o.id, t.product, t.qty, t.price
        FROM orders o, LATERAL (
          SELECT product, qty, price FROM items i WHERE i.order_id = o.id
          ORDER BY qty DESC, product, price LIMIT 2
        ) t
        """,
        TOP_N,
    ),
    case(
        "LATERAL top-N by columns that it does not give",
        """
        SELECT d.id, t.name
        FROM dept d, LATERAL (SELECT e.name FROM emp e WHERE e.dept_id = d.id ORDER BY e.salary DESC, e.id DESC LIMIT 2) t
        """,
        TOP_N,
    ),
    case(
        "LATERAL top-1 with ties in the order",
        """
        SELECT d.id, d.name, t.name AS best, t.salary
        FROM dept d, LATERAL (
          SELECT name, salary FROM emp e WHERE e.dept_id = d.id ORDER BY salary DESC NULLS LAST LIMIT 1
        ) t
        """,
        TOP_N,
        fixed_order=True,
    ),
    case(
        "LATERAL top-N with OFFSET",
        """
        SELECT o.id, t.product, t.qty
        FROM orders o, LATERAL (
          SELECT product, qty FROM items i WHERE i.order_id = o.id
          ORDER BY qty DESC, product LIMIT 2 OFFSET 1
        ) t
        """,
        TOP_N,
    ),
    case(
        "LATERAL correlated aggregate",
        """
        SELECT o.id, s.total, s.n
        FROM orders o, LATERAL (
          SELECT sum(qty * price) AS total, count(*) AS n FROM items i WHERE i.order_id = o.id
        ) s
        """,
        AGGREGATED,
    ),
    case(
        "LEFT JOIN LATERAL with an aggregate",
        """
        SELECT d.id, d.name, s.total, s.n
        FROM dept d LEFT JOIN LATERAL (
          SELECT sum(salary) AS total, count(*) AS n FROM emp e WHERE e.dept_id = d.id
        ) s ON true
        """,
        AGGREGATED,
    ),
    case(
        "LEFT JOIN LATERAL: a match appears, the last match disappears",
        """
        SELECT o.id, o.customer, t.product, t.price
        FROM orders o LEFT JOIN LATERAL (
          SELECT product, price FROM items i WHERE i.order_id = o.id AND i.qty > 1
        ) t ON true
        """,
        PADDED,
        rounds=(
            step("a first match appears", items=([], [(6, "gear", 2, Decimal("7.00"))])),
            step("a second match appears", items=([], [(6, "gear", 2, Decimal("7.00"))])),
            step("one of two equal matches goes", items=([(6, "gear", 2, Decimal("7.00"))], [])),
            step("the last match disappears", items=([(6, "gear", 2, Decimal("7.00"))], [])),
            step(
                "the match fails its filter",
                items=([(7, "cam", 5, Decimal("9.00"))], [(7, "cam", 1, Decimal("9.00"))]),
            ),
            step(
                "order and match arrive together",
                orders=([], [(20, "Di", date(2024, 1, 6), "open", None)]),
                items=([], [(20, "nut", 3, None)]),
            ),
            step(
                "order and match go together",
                orders=([(20, "Di", date(2024, 1, 6), "open", None)], []),
                items=([(20, "nut", 3, None)], []),
            ),
        ),
    ),
    case(
        "LATERAL look-up of several columns",
        """
        SELECT e.id, b.name AS boss, b.salary AS boss_salary, b.hired
        FROM emp e, LATERAL (
          SELECT name, salary, hired FROM emp x WHERE x.id = e.boss_id ORDER BY x.id LIMIT 1
        ) b
        """,
        TOP_N,
    ),
    case(
        "LATERAL with GROUP BY inside",
        """
        SELECT o.id, t.product, t.n, t.q
        FROM orders o, LATERAL (
          SELECT product, count(*) AS n, sum(qty) AS q FROM items i WHERE i.order_id = o.id GROUP BY product
        ) t
        """,
        AGGREGATED,
    ),
    case(
        "LATERAL with GROUP BY and HAVING inside",
        """
        SELECT d.id, t.name, t.n
        FROM dept d LEFT JOIN LATERAL (
          SELECT name, count(*) AS n FROM emp e WHERE e.dept_id = d.id GROUP BY name HAVING sum(salary) >= 500
        ) t ON true
        """,
        AGGREGATED,
    ),
    case(
        "LATERAL with DISTINCT inside",
        """
        SELECT o.id, t.product
        FROM orders o, LATERAL (SELECT DISTINCT product FROM items i WHERE i.order_id = o.id) t
        """,
        AGGREGATED,
    ),
    case(
        "LATERAL with a window inside",
        """
        SELECT d.id, t.name, t.place, t.running
        FROM dept d, LATERAL (
          SELECT name, rank() OVER (ORDER BY salary DESC, id) AS place,
                 sum(salary) OVER (ORDER BY id) AS running
          FROM emp e WHERE e.dept_id = d.id
        ) t
        """,
        WINDOW_INSIDE,
    ),
    case(
        "LATERAL with UNION ALL inside",
        """
        SELECT a.k, a.v, t.w
        FROM bag_a a, LATERAL (
          SELECT v AS w FROM bag_b b WHERE b.k = a.k UNION ALL SELECT v AS w FROM bag_c c WHERE c.k = a.k
        ) t
        """,
        SET_INSIDE,
    ),
    case(
        "LATERAL with UNION inside",
        """
        SELECT a.k, a.v, t.w
        FROM bag_a a, LATERAL (
          SELECT v AS w FROM bag_b b WHERE b.k = a.k UNION SELECT v FROM bag_c c WHERE c.k = a.k
        ) t
        """,
        SET_INSIDE,
    ),
    case(
        "LATERAL with INTERSECT inside",
        """
        SELECT a.k, a.v, t.w
        FROM bag_a a, LATERAL (
          SELECT v AS w FROM bag_b b WHERE b.k = a.k INTERSECT SELECT v FROM bag_c c WHERE c.k = a.k
        ) t
        """,
        SET_INSIDE,
    ),
    case(
        "LEFT JOIN LATERAL with EXCEPT inside",
        """
        SELECT a.k, a.v, t.w
        FROM bag_a a LEFT JOIN LATERAL (
          SELECT v AS w FROM bag_b b WHERE b.k = a.k EXCEPT SELECT v FROM bag_c c WHERE c.k = a.k
        ) t ON true
        """,
        SET_INSIDE,
    ),
    case(
        "LATERAL over several preceding FROM items",
        """
        SELECT a.k, b.k AS bk, t.n, t.top
        FROM bag_a a, bag_b b, LATERAL (
          SELECT count(*) AS n, max(c.v) AS top FROM bag_c c WHERE c.k = a.k AND c.v = b.v
        ) t
        """,
        AGGREGATED,
    ),
    case(
        "LATERAL chained: one uses the other's columns",
        """
        SELECT d.id, m.top, w.names
        FROM dept d,
             LATERAL (SELECT max(salary) AS top FROM emp e WHERE e.dept_id = d.id) m,
             LATERAL (SELECT count(*) AS names FROM emp x WHERE x.salary = m.top) w
        """,
        CHAINED,
    ),
    case(
        "LATERAL chained three deep",
        """
        SELECT o.id, i.product, p.price AS list_price, x.line
        FROM orders o,
             LATERAL (SELECT product, qty FROM items i WHERE i.order_id = o.id) i,
             LATERAL (SELECT price FROM prices p WHERE p.product = i.product AND p.since <= o.day
                      AND (p.until IS NULL OR o.day <= p.until)) p,
             LATERAL (SELECT p.price * i.qty AS line) x
        """,
        CHAINED,
    ),
    case(
        "LEFT JOIN LATERAL chained",
        """
        SELECT o.id, i.product, n.others
        FROM orders o
        LEFT JOIN LATERAL (SELECT product FROM items i WHERE i.order_id = o.id) i ON true
        LEFT JOIN LATERAL (
          SELECT count(*) AS others FROM items x WHERE x.product = i.product AND x.order_id <> o.id
        ) n ON true
        """,
        CHAINED,
    ),
    case(
        "LATERAL with non-equi correlation",
        """
        SELECT e.id, e.salary, t.richer
        FROM emp e, LATERAL (SELECT count(*) AS richer FROM emp x WHERE x.salary > e.salary) t
        """,
        PAIRED,
    ),
    case(
        "LATERAL with range correlation",
        """
        SELECT o.id, o.day, t.product, t.price
        FROM orders o, LATERAL (
          SELECT product, price FROM prices p WHERE o.day BETWEEN p.since AND coalesce(p.until, DATE '9999-12-31')
        ) t
        """,
        JOINED,
    ),
    case(
        "LATERAL with correlation under OR",
        """
        SELECT a.k, a.v, t.n
        FROM bag_a a, LATERAL (SELECT count(*) AS n FROM bag_b b WHERE b.k = a.k OR b.v = a.v) t
        """,
        PAIRED,
    ),
    case(
        "LATERAL without correlation",
        "SELECT a.k, a.v, t.s FROM bag_a a, LATERAL (SELECT sum(v) AS s FROM bag_b) t",
        JOINED,
    ),
    case(
        "LATERAL without a table",
        "SELECT o.id, t.one, t.twice FROM orders o, LATERAL (SELECT 1 AS one, o.amount * 2 AS twice) t",
        EXPANDED,
    ),
    case(
        "LATERAL over its own table",
        """
        SELECT e.id, e.name, t.name AS mate
        FROM emp e, LATERAL (SELECT name FROM emp x WHERE x.dept_id = e.dept_id AND x.id <> e.id) t
        """,
        JOINED,
    ),
    case(
        "LATERAL with a join inside",
        """
        SELECT d.id, t.n, t.spent
        FROM dept d, LATERAL (
          SELECT count(*) AS n, sum(o.amount) AS spent
          FROM emp e JOIN orders o ON lower(o.customer) = lower(e.name) OR o.id = e.id
          WHERE e.dept_id = d.id
        ) t
        """,
        AGGREGATED,
    ),
    case(
        "LATERAL with EXISTS inside",
        """
        SELECT d.id, t.name
        FROM dept d, LATERAL (
          SELECT name FROM emp e
          WHERE e.dept_id = d.id AND EXISTS (SELECT 1 FROM emp x WHERE x.boss_id = e.id)
        ) t
        """,
        JOINED,
    ),
    case(
        "LATERAL inside LATERAL",
        """
        SELECT o.id, t.product, t.list_price
        FROM orders o, LATERAL (
          SELECT i.product, p.list_price
          FROM items i, LATERAL (
            SELECT max(price) AS list_price FROM prices p WHERE p.product = i.product
          ) p
          WHERE i.order_id = o.id
        ) t
        """,
        CHAINED,
    ),
    case(
        "LATERAL correlated by a null-safe equality",
        """
        SELECT a.k, a.v, t.n
        FROM bag_a a, LATERAL (SELECT count(*) AS n FROM bag_b b WHERE b.k <=> a.k) t
        """,
        AGGREGATED,
    ),
    case(
        "LATERAL correlated by two columns",
        """
        SELECT a.k, a.v, t.n
        FROM bag_a a LEFT JOIN LATERAL (
          SELECT k AS n FROM bag_b b WHERE b.k = a.k AND b.v = a.v ORDER BY k LIMIT 1
        ) t ON true
        """,
        TOP_N,
    ),
    case(
        "LEFT JOIN LATERAL with a join condition",
        """
        SELECT d.id, t.name, t.salary
        FROM dept d LEFT JOIN LATERAL (SELECT name, salary FROM emp e WHERE e.dept_id = d.id) t
          ON t.salary > d.budget / 2
        """,
        PADDED,
    ),
    case(
        "aggregate over LATERAL",
        """
        SELECT o.customer, count(t.product) AS n, sum(t.line) AS total
        FROM orders o LEFT JOIN LATERAL (
          SELECT product, qty * price AS line FROM items i WHERE i.order_id = o.id
          ORDER BY qty * price DESC NULLS LAST, product LIMIT 2
        ) t ON true
        GROUP BY o.customer
        """,
        TOP_N,
    ),
    case(
        "LATERAL over an aggregate",
        """
        SELECT g.customer, g.spent, t.id
        FROM (SELECT customer, sum(amount) AS spent FROM orders GROUP BY customer) g,
             LATERAL (SELECT id FROM orders o WHERE o.customer = g.customer AND o.amount * 2 > g.spent) t
        """,
        JOINED,
    ),
)
