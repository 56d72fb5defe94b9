"""Joins of every kind, alone and over each other."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from .case import Case, Way, case
from .rounds import step
from .tables import DEPT, EMP

INNER = Way(
    "changed rows of one side meet the other side, new on the right and old on the left", "matches of the changed rows"
)
CROSS = Way("changed rows of one side meet all of the other", "the other side for each changed row")
LEFT = Way("as an inner join, and keys that gain or lose their match swap the padded row", "rows of the touched keys")
FULL = Way("as an inner join, with padded rows of both sides by key", "rows of the touched keys")
SEMI = Way("left rows of the touched keys are evaluated again", "left rows of the keys that changed on the right")
RANGE = Way("changed rows meet the other side under the condition", "the other side, unless an equality narrows it")
PADDED_RANGE = Way("padded rows are determined over all left rows when the right side changes", "all left rows")
TREE = Way("the change of each table passes through the tree", "matches of the changed rows, per level")
AGGREGATED = Way("the join's change touches its groups", "rows of the touched groups")

_SELF_ROUNDS = (
    step(
        "an update seen from both sides",
        emp=([EMP.rows[1]], [(2, "rob", 2, 1, Decimal("710.00"), date(2020, 3, 1))]),
    ),
    step("a delete seen from both sides", emp=([EMP.rows[2]], [])),
    step("a boss comes with a report", emp=([], [(20, "max", 3, None, None, None), (21, "min", 3, 20, None, None)])),
    step("the boss's key goes, the report stays", emp=([(20, "max", 3, None, None, None)], [])),
    step("the root goes and comes as another", emp=([EMP.rows[0]], [(1, "zed", None, None, None, None)])),
    step(
        "all change departments",
        emp=([EMP.rows[4], EMP.rows[9]], [(5, "eve", 1, 2, None, None), (10, "ida", 1, 2, None, None)]),
    ),
)

CASES: tuple[Case, ...] = (
    case(
        "inner join", "SELECT o.id, o.customer, i.product, i.qty FROM orders o JOIN items i ON i.order_id = o.id", INNER
    ),
    case(
        "inner join with duplicates on both sides",
        "SELECT a.k, a.v, b.v AS w FROM bag_a a JOIN bag_b b ON a.k = b.k",
        INNER,
    ),
    case(
        "comma join with WHERE",
        "SELECT e.name, d.name AS dept_name FROM emp e, dept d WHERE e.dept_id = d.id AND d.budget > 100",
        INNER,
    ),
    case("cross join", "SELECT a.k, a.v, c.k AS ck FROM bag_a a CROSS JOIN bag_c c", CROSS),
    case("left join", "SELECT o.id, o.customer, i.product FROM orders o LEFT JOIN items i ON i.order_id = o.id", LEFT),
    case(
        "left join with a condition on the left side",
        "SELECT o.id, o.status, i.product FROM orders o LEFT JOIN items i ON i.order_id = o.id AND o.status = 'paid'",
        LEFT,
    ),
    case(
        "left join with a condition on the right side, and WHERE on it",
        """
        SELECT o.id, i.product, i.qty FROM orders o LEFT JOIN items i ON i.order_id = o.id AND i.qty > 3
        WHERE i.product IS NULL OR i.product <> 'bolt'
        """,
        LEFT,
    ),
    case(
        "right join", "SELECT e.name, d.id, d.name AS dept_name FROM emp e RIGHT JOIN dept d ON e.dept_id = d.id", LEFT
    ),
    case(
        "full join",
        "SELECT e.id, e.name, d.id AS did, d.name AS dept_name FROM emp e FULL JOIN dept d ON e.dept_id = d.id",
        FULL,
    ),
    case(
        "full join with duplicates and NULL keys",
        "SELECT a.k, a.v, b.k AS bk, b.v AS bv FROM bag_a a FULL JOIN bag_b b ON a.k = b.k AND a.v = b.v",
        FULL,
    ),
    case("left semi join", "SELECT o.id, o.customer FROM orders o LEFT SEMI JOIN items i ON i.order_id = o.id", SEMI),
    case(
        "left anti join",
        "SELECT o.id, o.customer FROM orders o LEFT ANTI JOIN items i ON i.order_id = o.id AND i.qty > 1",
        SEMI,
    ),
    case(
        "semi and anti join with duplicates",
        """
        SELECT a.k, a.v FROM bag_a a LEFT SEMI JOIN bag_b b ON a.k = b.k LEFT ANTI
        JOIN bag_c c ON a.k = c.k AND a.v = c.v
        """,
        SEMI,
    ),
    case("natural join", "SELECT * FROM bag_a NATURAL JOIN bag_b", INNER),
    case("natural left join", "SELECT * FROM bag_a NATURAL LEFT JOIN (SELECT k, v AS w FROM bag_b)", LEFT),
    case("natural full join", "SELECT * FROM bag_a NATURAL FULL JOIN bag_c", FULL),
    case("join USING", "SELECT k, a.v, b.v AS w FROM bag_a a JOIN bag_b b USING (k)", INNER),
    case("full join USING", "SELECT k, a.v, b.v AS w FROM bag_a a FULL JOIN bag_b b USING (k)", FULL),
    case("right join USING two columns", "SELECT k, v FROM bag_a RIGHT JOIN bag_b USING (k, v)", LEFT),
    case("non-equi join", "SELECT a.k, a.v, b.k AS bk FROM bag_a a JOIN bag_b b ON a.v < b.v", RANGE),
    case(
        "range join: validity by BETWEEN",
        """
        SELECT o.id, i.product, p.price
        FROM orders o JOIN items i ON i.order_id = o.id
        JOIN prices p ON p.product = i.product AND o.day BETWEEN p.since AND coalesce(p.until, DATE '9999-12-31')
        """,
        INNER,
    ),
    case(
        "range join without equality",
        """
        SELECT o.id, p.product, p.price FROM orders o
        JOIN prices p ON o.day >= p.since AND (p.until IS NULL OR o.day <= p.until)
        """,
        RANGE,
    ),
    case(
        "left range join without equality",
        "SELECT a.k, a.v, b.v AS w FROM bag_a a LEFT JOIN bag_b b ON a.v > b.v AND a.k > b.k",
        PADDED_RANGE,
    ),
    case(
        "full join without equality",
        "SELECT a.k, a.v, c.k AS ck, c.v AS cv FROM bag_a a FULL JOIN bag_c c ON a.v < c.v",
        PADDED_RANGE,
    ),
    case("left join on a constant", "SELECT a.k, a.v, c.v AS w FROM bag_a a LEFT JOIN bag_c c ON true", PADDED_RANGE),
    case("join under OR", "SELECT a.k, b.k AS bk FROM bag_a a JOIN bag_b b ON a.k = b.k OR a.v = b.v", RANGE),
    case("null-safe join", "SELECT a.k, a.v, b.v AS w FROM bag_a a JOIN bag_b b ON a.k <=> b.k", INNER),
    case(
        "null-safe left join",
        "SELECT a.k, a.v, c.v AS w FROM bag_a a LEFT JOIN bag_c c ON a.k <=> c.k AND a.v <=> c.v",
        LEFT,
    ),
    case(
        "join on expressions",
        "SELECT o.id, e.id AS event FROM orders o JOIN events e ON lower(o.customer) = e.who",
        INNER,
    ),
    case(
        "join on a double with NaN and -0.0",
        "SELECT a.id, b.id AS other FROM docs a JOIN docs b ON a.score = b.score AND a.id < b.id",
        INNER,
    ),
    case(
        "join on structs and arrays",
        "SELECT a.id, b.id AS other FROM docs a JOIN docs b ON a.span = b.span AND a.tags <=> b.tags",
        INNER,
    ),
    case(
        "self join with update and delete",
        "SELECT e.id, e.name, b.name AS boss FROM emp e JOIN emp b ON e.boss_id = b.id",
        INNER,
        rounds=_SELF_ROUNDS,
    ),
    case(
        "self left join with update and delete",
        "SELECT e.id, e.name, b.name AS boss, b.dept_id AS boss_dept FROM emp e LEFT JOIN emp b ON e.boss_id = b.id",
        LEFT,
        rounds=_SELF_ROUNDS,
    ),
    case(
        "self full join",
        "SELECT e.id, b.id AS boss FROM emp e FULL JOIN emp b ON e.boss_id = b.id AND e.dept_id = b.dept_id",
        FULL,
    ),
    case(
        "self join of pairs with duplicates",
        "SELECT x.k, x.v, y.v AS w FROM bag_a x JOIN bag_a y ON x.k = y.k AND x.v < y.v",
        INNER,
    ),
    case(
        "self anti join: the largest of each key",
        "SELECT x.k, x.v FROM bag_a x LEFT ANTI JOIN bag_a y ON x.k = y.k AND y.v > x.v",
        SEMI,
    ),
    case(
        "three tables",
        """
        SELECT o.id, i.product, p.price
        FROM orders o JOIN items i ON i.order_id = o.id JOIN prices p ON p.product = i.product AND p.until IS NULL
        """,
        TREE,
    ),
    case(
        "eight tables",
        """
        SELECT o.id, i.product, p.price, e.name, d.name AS dept_name, b.name AS boss, v.kind, s.amount AS sold
        FROM orders o
        JOIN items i ON i.order_id = o.id
        JOIN prices p ON p.product = i.product AND p.since <= o.day
        JOIN emp e ON e.id = o.id
        JOIN dept d ON d.id = e.dept_id
        LEFT JOIN emp b ON b.id = e.boss_id
        LEFT JOIN events v ON v.who = lower(o.customer) AND v.kind <> 'click'
        LEFT JOIN sales s ON s.product = i.product AND s.quarter = 'q1'
        """,
        TREE,
    ),
    case(
        "eight tables, aggregated",
        """
        SELECT d.city, count(*) AS n, sum(i.qty * p.price) AS total, count(DISTINCT o.customer) AS customers
        FROM dept d
        JOIN emp e ON e.dept_id = d.id
        JOIN orders o ON o.id = e.id
        JOIN items i ON i.order_id = o.id
        JOIN prices p ON p.product = i.product
        LEFT JOIN bag_a a ON a.k = d.id
        LEFT JOIN bag_b b ON b.k = a.k AND b.v = a.v
        LEFT JOIN bag_c c ON c.k = b.k
        GROUP BY d.city
        """,
        TREE,
    ),
    case(
        "left join over left join",
        """
        SELECT d.name, e.name AS who, o.amount
        FROM dept d LEFT JOIN emp e ON e.dept_id = d.id LEFT JOIN orders o ON o.id = e.id
        """,
        LEFT,
    ),
    case(
        "left join to a left join",
        """
        SELECT d.name, x.name AS who, x.amount
        FROM dept d LEFT JOIN (
          SELECT e.dept_id, e.name, o.amount FROM emp e LEFT JOIN orders o ON o.id = e.id AND o.status = 'paid'
        ) x ON x.dept_id = d.id AND x.amount IS NOT NULL
        """,
        LEFT,
    ),
    case(
        "full join over full join",
        """
        SELECT coalesce(a.k, b.k, c.k) AS k, a.v AS av, b.v AS bv, c.v AS cv
        FROM bag_a a FULL JOIN bag_b b ON a.k = b.k FULL JOIN bag_c c ON c.k = coalesce(a.k, b.k)
        """,
        FULL,
    ),
    case(
        "right join over left join",
        "SELECT a.k, b.v AS bv, c.k AS ck FROM bag_a a LEFT JOIN bag_b b ON a.k = b.k RIGHT JOIN bag_c c ON c.k = b.k",
        LEFT,
    ),
    case(
        "inner join over outer join that makes it inner",
        "SELECT a.k, b.v, c.v AS cv FROM bag_a a LEFT JOIN bag_b b ON a.k = b.k JOIN bag_c c ON c.v = b.v",
        LEFT,
    ),
    case(
        "outer join whose padding is asked for",
        "SELECT d.id, d.name FROM dept d LEFT JOIN emp e ON e.dept_id = d.id WHERE e.id IS NULL",
        LEFT,
    ),
    case(
        "left join under an aggregate",
        """
        SELECT d.id, count(e.id) AS n, sum(e.salary) AS s FROM dept d LEFT JOIN emp e ON e.dept_id = d.id
        GROUP BY d.id
        """,
        AGGREGATED,
    ),
    case(
        "full join under an aggregate",
        """
        SELECT coalesce(a.k, b.k) AS k, count(*) AS n, sum(a.v) AS av, count(b.v) AS bn
        FROM bag_a a FULL JOIN bag_b b ON a.k = b.k GROUP BY coalesce(a.k, b.k)
        """,
        AGGREGATED,
    ),
    case(
        "full join of aggregates",
        """
        SELECT coalesce(a.k, b.k) AS k, a.n, b.s
        FROM (SELECT k, count(*) AS n FROM bag_a GROUP BY k) a
        FULL JOIN (SELECT k, sum(v) AS s FROM bag_b GROUP BY k) b ON a.k <=> b.k
        """,
        FULL,
    ),
    case(
        "left join to a distinct, semi join above",
        """
        SELECT o.id, p.product
        FROM orders o LEFT JOIN (SELECT DISTINCT order_id, product FROM items) p ON p.order_id = o.id
        LEFT SEMI JOIN events e ON e.who = lower(o.customer)
        """,
        LEFT,
    ),
    case(
        "co-deletion of both partners",
        "SELECT e.id, e.name, d.id AS did, d.name AS dept_name FROM emp e FULL JOIN dept d ON e.dept_id = d.id",
        FULL,
        rounds=(
            step("a pair goes together", emp=([EMP.rows[6]], []), dept=([DEPT.rows[2]], [])),
            step("a pair comes together", emp=([], [EMP.rows[6]]), dept=([], [DEPT.rows[2]])),
            step(
                "all people of a department go, and one of two others",
                emp=([EMP.rows[3], EMP.rows[4], EMP.rows[9], EMP.rows[1]], []),
                dept=([DEPT.rows[1]], []),
            ),
            step("the department alone comes back", dept=([], [DEPT.rows[1]])),
            step(
                "a department and its person swap keys with others",
                emp=([EMP.rows[8]], [(9, "ann", 6, 5, None, None)]),
                dept=([DEPT.rows[3]], [(6, "art", None, None)]),
            ),
            step("a department goes, its people stay", dept=([DEPT.rows[0]], [])),
        ),
    ),
    case(
        "join with a table of constants",
        """
        SELECT o.id, o.status, s.label FROM orders o
        JOIN VALUES ('paid', 'done'), ('open', 'todo') AS s(status, label) USING (status)
        """,
        INNER,
    ),
    case(
        "outer join with a table of constants",
        "SELECT s.k AS want, a.v FROM VALUES (1), (3), (9), (NULL) AS s(k) LEFT JOIN bag_a a ON a.k = s.k",
        LEFT,
    ),
)
