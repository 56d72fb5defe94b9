"""Subqueries in every place and every combination."""

from __future__ import annotations

from .case import Case, Way, case
from .rounds import Change, Round, step
from .tables import DEPT

SEMI = Way(
    "a semi join: outer rows of the touched keys are evaluated again", "outer rows of the keys that changed inside"
)
ANTI = Way(
    "an anti join: outer rows of the touched keys are evaluated again", "outer rows of the keys that changed inside"
)
NULL_AWARE = Way(
    "two stored facts about the subquery (is it empty, does it hold a NULL) and an anti join by key; with several columns a "
    "null-aware anti join without a key",
    "outer rows of the keys that changed inside; all outer rows when a fact changes, or with several columns",
)
FLAG = Way(
    "an existence flag per outer row, by key; the condition is computed over the flags",
    "outer rows of the keys that changed inside",
)
PAIRED = Way("without an equality every outer row may be affected", "all outer rows when the subquery's table changes")
ONE_ROW = Way(
    "a join with the one-row result; outer rows are evaluated again only if the value changes",
    "all outer rows when the value changes",
)
CORRELATED = Way("an outer join with an aggregate by the correlation key", "rows of the touched keys on both sides")
NESTED = Way("each level is a join over the one inside it", "rows of the touched keys, per level")

_NULL_ROUNDS_INSIDE = (
    step("a NULL appears inside", bag_b=([], [(None, 7)])),
    step("outer rows come and go meanwhile", bag_a=([(3, 30)], [(6, 60), (None, 6)])),
    step("a second NULL appears", bag_b=([], [(None, 7)])),
    step("one of two NULLs goes", bag_b=([(None, 7)], [])),
    step("the last NULL goes", bag_b=([(None, 7)], [])),
    step("a key appears inside", bag_b=([], [(6, 1)])),
    step("inside is emptied", bag_b=([(1, 20), (1, 10), (3, 30), (3, 30), (5, 10), (4, 20), (6, 1)], [])),
    step("only a NULL inside", bag_b=([], [(None, None)])),
    step(
        "inside is filled, the NULL goes, both sides change",
        bag_a=([(1, 10)], [(7, 7)]),
        bag_b=([(None, None)], [(1, 1), (7, 7)]),
    ),
)
_NO_NULL = step("the NULL that was there goes, and a key", bag_b=([(None, 10), (2, 20)], []))

CASES: tuple[Case, ...] = (
    case("EXISTS", "SELECT d.id, d.name FROM dept d WHERE EXISTS (SELECT 1 FROM emp e WHERE e.dept_id = d.id)", SEMI),
    case(
        "EXISTS with a further condition",
        "SELECT d.id FROM dept d WHERE EXISTS (SELECT 1 FROM emp e WHERE e.dept_id = d.id AND e.salary > d.budget / 2)",
        SEMI,
    ),
    case(
        "NOT EXISTS",
        "SELECT d.id, d.name FROM dept d WHERE NOT EXISTS (SELECT 1 FROM emp e WHERE e.dept_id = d.id)",
        ANTI,
    ),
    case(
        "NOT EXISTS with duplicates outside and inside",
        "SELECT a.k, a.v FROM bag_a a WHERE NOT EXISTS (SELECT 1 FROM bag_b b WHERE b.k = a.k AND b.v = a.v)",
        ANTI,
    ),
    case(
        "EXISTS without correlation", "SELECT k, v FROM bag_a WHERE EXISTS (SELECT 1 FROM bag_b WHERE v > 25)", ONE_ROW
    ),
    case(
        "EXISTS with non-equi correlation",
        "SELECT a.k, a.v FROM bag_a a WHERE EXISTS (SELECT 1 FROM bag_b b WHERE b.v > a.v)",
        PAIRED,
    ),
    case("IN", "SELECT id, customer FROM orders WHERE id IN (SELECT order_id FROM items WHERE qty > 1)", SEMI),
    case("IN with NULLs on both sides", "SELECT k, v FROM bag_a WHERE k IN (SELECT k FROM bag_b)", SEMI),
    case("IN correlated", "SELECT k, v FROM bag_a a WHERE v IN (SELECT v FROM bag_b b WHERE b.k = a.k)", SEMI),
    case("IN with several columns", "SELECT k, v FROM bag_a WHERE (k, v) IN (SELECT k, v FROM bag_b)", SEMI),
    case(
        "IN over an aggregate",
        "SELECT id FROM orders WHERE id IN (SELECT order_id FROM items GROUP BY order_id HAVING sum(qty) > 4)",
        SEMI,
    ),
    case(
        "NOT IN: NULLs inside appear and disappear",
        "SELECT k, v FROM bag_a WHERE k NOT IN (SELECT k FROM bag_b)",
        NULL_AWARE,
        rounds=(_NO_NULL, *_NULL_ROUNDS_INSIDE),
    ),
    case(
        "NOT IN: NULLs outside appear and disappear",
        "SELECT k, v FROM bag_c WHERE k NOT IN (SELECT k FROM bag_b WHERE k IS NOT NULL)",
        NULL_AWARE,
        rounds=(
            step("a NULL appears outside", bag_c=([], [(None, 1)])),
            step("a NULL goes outside", bag_c=([(None, None)], [])),
            step(
                "inside is emptied: NULL is not in nothing",
                bag_b=([(1, 10), (1, 20), (2, 20), (3, 30), (3, 30), (5, 10), (4, 20)], []),
            ),
            step("a NULL becomes a number", bag_c=([(None, 1)], [(8, 1)])),
            step("a number becomes NULL", bag_c=([(8, 1)], [(None, 1)])),
            step("inside is filled", bag_b=([], [(1, 1)])),
        ),
    ),
    case(
        "NOT IN over generated rounds",
        "SELECT k, v FROM bag_a WHERE v NOT IN (SELECT v FROM bag_b WHERE k IN (2, 3) AND v > 10)",
        NULL_AWARE,
    ),
    case(
        "NOT IN with several columns",
        "SELECT k, v FROM bag_a WHERE (k, v) NOT IN (SELECT k, v FROM bag_b WHERE k IS NOT NULL)",
        NULL_AWARE,
    ),
    case(
        "NOT IN correlated",
        "SELECT k, v FROM bag_a a WHERE v NOT IN (SELECT v FROM bag_b b WHERE b.k = a.k)",
        NULL_AWARE,
    ),
    case(
        "NOT IN under OR",
        "SELECT k, v FROM bag_a WHERE v = 10 OR k NOT IN (SELECT k FROM bag_b)",
        NULL_AWARE,
        rounds=(_NO_NULL, *_NULL_ROUNDS_INSIDE),
    ),
    case(
        "EXISTS under OR",
        "SELECT id FROM orders o WHERE amount > 100 OR EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id)",
        FLAG,
    ),
    case(
        "two ORs with EXISTS in each",
        """
        SELECT id FROM orders o
        WHERE (status = 'paid' OR EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id AND i.qty > 3))
          AND (amount < 100 OR NOT EXISTS (SELECT 1 FROM emp e WHERE e.id = o.id))
        """,
        FLAG,
    ),
    case(
        "EXISTS under AND under OR",
        """
        SELECT id FROM orders o
        WHERE status = 'void' OR (amount > 50 AND EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id))
        """,
        FLAG,
    ),
    case(
        "De Morgan: NOT over AND with NOT EXISTS",
        """
        SELECT id, status FROM orders o
        WHERE NOT (status = 'paid' AND NOT EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id))
        """,
        FLAG,
    ),
    case(
        "De Morgan: NOT over OR with EXISTS and IN",
        """
        SELECT k, v FROM bag_a a
        WHERE NOT (v = 30 OR EXISTS (SELECT 1 FROM bag_c c WHERE c.k = a.k AND c.v = a.v)
                   OR k IN (SELECT k FROM bag_b WHERE v = 30))
        """,
        FLAG,
    ),
    case(
        "three ORs with EXISTS in each",
        """
        SELECT k, v FROM bag_a a
        WHERE (v = 10 OR EXISTS (SELECT 1 FROM bag_b b WHERE b.k = a.k))
          AND (v = 20 OR EXISTS (SELECT 1 FROM bag_b b WHERE b.v = a.v))
          AND (k = 1 OR NOT EXISTS (SELECT 1 FROM bag_c c WHERE c.k = a.k))
        """,
        FLAG,
    ),
    case(
        "five subqueries in one WHERE",
        """
        SELECT o.id FROM orders o
        WHERE (EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id) OR o.id IN (SELECT id FROM emp))
          AND NOT (o.id IN (SELECT dept_id FROM emp WHERE salary > 800)
                   AND EXISTS (SELECT 1 FROM dept d WHERE d.id = o.id))
          AND (o.amount >= (SELECT min(amount) FROM orders) OR o.amount IS NULL)
        """,
        FLAG,
    ),
    case(
        "EXISTS in the SELECT list",
        "SELECT id, EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id AND i.qty > 3) AS big FROM orders o",
        FLAG,
    ),
    case(
        "IN in the SELECT list",
        "SELECT k, v, k IN (SELECT k FROM bag_b WHERE k IS NOT NULL) AS there FROM bag_a",
        FLAG,
    ),
    case(
        "EXISTS in CASE, grouped by",
        """
        SELECT c, count(*) AS n
        FROM (
          SELECT CASE WHEN EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id) THEN 'full' ELSE 'empty' END AS c
          FROM orders o
        ) GROUP BY c
        """,
        FLAG,
    ),
    case(
        "EXISTS in a join condition's side",
        """
        SELECT e.id, d.name FROM emp e
        LEFT JOIN (SELECT * FROM dept d WHERE EXISTS (SELECT 1 FROM emp x WHERE x.dept_id = d.id AND x.salary > 600)) d
          ON d.id = e.dept_id
        """,
        SEMI,
    ),
    case(
        "EXISTS in HAVING",
        """
        SELECT dept_id, count(*) AS n FROM emp e GROUP BY dept_id
        HAVING EXISTS (SELECT 1 FROM dept d WHERE d.id = e.dept_id AND d.budget >= 500)
        """,
        SEMI,
    ),
    case(
        "ALL in its Spark form",
        """
        SELECT a.k, a.v FROM bag_a a
        WHERE NOT EXISTS (SELECT 1 FROM bag_c c WHERE c.k <> 3 AND NOT coalesce(a.v * 4 >= c.v, false))
        """,
        PAIRED,
        limits="Spark has no ALL: write NOT EXISTS of the contrary",
    ),
    case(
        "ALL by min and max",
        "SELECT k, v FROM bag_a WHERE v * 2 >= (SELECT max(v) FROM bag_b)",
        ONE_ROW,
        limits="differs from ALL over nothing and over NULLs",
    ),
    case(
        "ANY in its Spark form",
        "SELECT a.k, a.v FROM bag_a a WHERE EXISTS (SELECT 1 FROM bag_b b WHERE a.v > b.v AND b.k = a.k)",
        SEMI,
        limits="Spark has no ANY over a subquery: write EXISTS",
    ),
    case(
        "scalar subquery in SELECT",
        "SELECT id, amount, (SELECT max(amount) FROM orders) AS top FROM orders",
        ONE_ROW,
    ),
    case(
        "scalar subquery in SELECT over another table",
        "SELECT k, v, (SELECT count(*) FROM bag_b) AS n, v - (SELECT avg(v) FROM bag_b) AS d FROM bag_a",
        ONE_ROW,
    ),
    case(
        "scalar subquery in WHERE",
        "SELECT id, salary FROM emp WHERE salary > (SELECT avg(salary) FROM emp)",
        ONE_ROW,
    ),
    case(
        "scalar subquery in HAVING",
        """
        SELECT customer, sum(amount) AS s FROM orders GROUP BY customer
        HAVING sum(amount) > (SELECT sum(qty * price) FROM items WHERE price < 50)
        """,
        ONE_ROW,
    ),
    case(
        "scalar subquery in CASE",
        """
        SELECT id, CASE WHEN amount > (SELECT avg(amount) FROM orders) THEN 'high'
                        WHEN amount IS NULL THEN (SELECT max(status) FROM orders) ELSE 'low' END AS c
        FROM orders
        """,
        ONE_ROW,
    ),
    case(
        "scalar subquery in an aggregate's argument",
        "SELECT dept_id, sum(salary - (SELECT min(salary) FROM emp)) AS above FROM emp GROUP BY dept_id",
        ONE_ROW,
    ),
    case(
        "scalar subquery that finds one row or none",
        "SELECT k, v, (SELECT name FROM dept WHERE id = 2) AS name FROM bag_a",
        ONE_ROW,
        rounds=(
            step("the row changes", dept=([DEPT.rows[1]], [(2, "sea", None, None)])),
            step("the row goes", dept=([(2, "sea", None, None)], [])),
            step("outer rows change", bag_a=([(3, 30)], [(9, 9)])),
            step(
                "the row comes back, both sides change", dept=([], [(2, "air", None, None)]), bag_a=([(9, 9)], [(8, 8)])
            ),
            step("another row changes", dept=([DEPT.rows[0]], [(1, "mud", None, None)])),
        ),
    ),
    case(
        "correlated scalar subquery in SELECT",
        "SELECT d.id, (SELECT max(salary) FROM emp e WHERE e.dept_id = d.id) AS top FROM dept d",
        CORRELATED,
    ),
    case(
        "correlated COUNT over nothing is 0",
        """
        SELECT d.id, (SELECT count(*) FROM emp e WHERE e.dept_id = d.id) AS n,
               (SELECT count(salary) + 1 FROM emp e WHERE e.dept_id = d.id) AS m,
               (SELECT sum(salary) FROM emp e WHERE e.dept_id = d.id) AS s
        FROM dept d
        """,
        CORRELATED,
    ),
    case(
        "correlated scalar subquery in WHERE",
        "SELECT id, salary FROM emp e WHERE salary > (SELECT avg(salary) FROM emp x WHERE x.dept_id = e.dept_id)",
        CORRELATED,
    ),
    case(
        "correlated scalar subquery by a unique key",
        "SELECT e.id, (SELECT first(d.name) FROM dept d WHERE d.id = e.dept_id) AS dept_name FROM emp e",
        CORRELATED,
    ),
    case(
        "correlated scalar subquery with non-equi correlation",
        "SELECT o.id, (SELECT count(*) FROM orders x WHERE x.amount > o.amount) AS above FROM orders o",
        Way(
            "the distinct outer values are paired with the inner table", "the inner table against changed outer values"
        ),
    ),
    case(
        "correlated scalar subquery in HAVING",
        """
        SELECT customer, count(*) AS n FROM orders o GROUP BY customer
        HAVING count(*) > (SELECT count(*) FROM events e WHERE e.who = lower(o.customer))
        """,
        CORRELATED,
    ),
    case(
        "correlated scalar subquery in CASE and ORDER of an aggregate",
        """
        SELECT o.customer,
               max(CASE WHEN (SELECT sum(qty) FROM items i WHERE i.order_id = o.id) > 4 THEN o.amount END) AS m
        FROM orders o GROUP BY o.customer
        """,
        CORRELATED,
    ),
    case(
        "correlated scalar subquery of several aggregates in an expression",
        """
        SELECT o.id, (SELECT coalesce(sum(qty), 0) * 10 + count(*) FROM items i WHERE i.order_id = o.id) AS x
        FROM orders o
        """,
        CORRELATED,
    ),
    case(
        "subqueries nested two deep",
        """
        SELECT id FROM dept d
        WHERE EXISTS (
          SELECT 1 FROM emp e WHERE e.dept_id = d.id AND e.id IN (SELECT boss_id FROM emp x WHERE x.salary > 300)
        )
        """,
        NESTED,
    ),
    case(
        "scalar subqueries nested two deep",
        """
        SELECT id, amount FROM orders
        WHERE amount > (SELECT avg(amount) FROM orders WHERE amount < (SELECT max(salary) FROM emp))
        """,
        NESTED,
    ),
    case(
        "NOT EXISTS of NOT EXISTS",
        """
        SELECT DISTINCT o.customer FROM orders o
        WHERE NOT EXISTS (
          SELECT 1 FROM (SELECT DISTINCT status FROM orders WHERE status = 'paid') s
          WHERE NOT EXISTS (
            SELECT 1 FROM (SELECT customer AS c, status AS st FROM orders) x WHERE x.st = s.status
          )
        ) AND o.customer IN (SELECT customer FROM orders WHERE amount > 50)
        """,
        NESTED,
    ),
    case(
        "subquery in FROM with columns renamed",
        "SELECT t.x, t.n FROM (SELECT k, count(*) FROM bag_a GROUP BY k) AS t(x, n) WHERE t.n > 1",
        Way("as the query inside", "as the query inside"),
    ),
    case(
        "a scalar subquery that comes to return two rows",
        "SELECT k, v, (SELECT name FROM dept WHERE city = 'Rome') AS name FROM bag_a",
        ONE_ROW,
        limits="more than one row is an error; the table stays as it was until the rows are one again",
        rounds=(
            step("one row", dept=([], [(7, "pope", "Rome", None)])),
            Round(
                "two rows",
                ({"dept": Change(inserts=((8, "forum", "Rome", None),)), "bag_a": Change(inserts=((9, 9),))},),
                fails="SCALAR_SUBQUERY_TOO_MANY_ROWS",
            ),
            step("one row again", dept=([(7, "pope", "Rome", None)], [])),
            step("none", dept=([(8, "forum", "Rome", None)], [])),
        ),
    ),
)
