"""ORDER BY with LIMIT and OFFSET."""

from __future__ import annotations

from .case import Case, Way, case
from .rounds import step
from .tables import BAG_B

TOP = Way(
    "the change is ranked among the stored rows; if one of them was deleted, the first rows are selected again",
    "the stored rows; the input of the LIMIT if one of them was deleted",
)
WITH_OFFSET = Way("the new window of rows minus the stored one", "the input of the LIMIT")
OVER_AGGREGATE = Way(
    "the groups are stored in a state table, and the first rows are taken from it",
    "as the groups; then the stored ones",
)
SUBQUERY = Way("the first rows are maintained, and their changes are passed on", "as at the top, then as what is above")
UNSORTED = Way("a table has no row order, so the order is dropped", "as without ORDER BY")
_TIES = "ties are decided by all output columns after the sort keys"

CASES: tuple[Case, ...] = (
    case("ORDER BY LIMIT", "SELECT id, customer, amount FROM orders ORDER BY amount DESC, id LIMIT 3", TOP),
    case(
        "ORDER BY LIMIT with ties at the boundary",
        "SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 4",
        TOP,
        fixed_order=True,
        limits=_TIES,
    ),
    case("ORDER BY LIMIT over equal rows", "SELECT k, v FROM bag_a ORDER BY k, v LIMIT 4", TOP),
    case(
        "ORDER BY a column that is not shown, with ties",
        "SELECT customer FROM orders ORDER BY day LIMIT 3",
        TOP,
        fixed_order=True,
        limits=_TIES,
    ),
    case("NULLS FIRST by default", "SELECT id, amount FROM orders ORDER BY amount, id LIMIT 3", TOP),
    case("NULLS LAST", "SELECT id, day FROM orders ORDER BY day ASC NULLS LAST, id LIMIT 3", TOP),
    case("DESC NULLS FIRST", "SELECT id, day FROM orders ORDER BY day DESC NULLS FIRST, id LIMIT 3", TOP),
    case(
        "ORDER BY LIMIT OFFSET",
        "SELECT id, amount FROM orders ORDER BY amount DESC NULLS LAST, id LIMIT 3 OFFSET 2",
        WITH_OFFSET,
    ),
    case(
        "ORDER BY OFFSET without LIMIT",
        "SELECT id, salary FROM emp ORDER BY salary DESC NULLS LAST, id OFFSET 3",
        WITH_OFFSET,
    ),
    case("fewer rows than k", "SELECT id, name FROM dept ORDER BY name, id LIMIT 50", TOP),
    case(
        "a row leaves and the next enters",
        "SELECT k, v FROM bag_b ORDER BY v DESC NULLS LAST, k LIMIT 2",
        TOP,
        rounds=(
            step("the first goes, the next enters", bag_b=([(3, 30)], [])),
            step("a new first comes", bag_b=([], [(9, 99)])),
            step("a row below the boundary comes and goes", bag_b=([(5, 10)], [(5, 5)])),
            step("a first row sinks", bag_b=([(9, 99)], [(9, 1)])),
            step("a last row rises", bag_b=([(9, 1)], [(9, 100), (9, 100)])),
            step(
                "fewer than k", bag_b=([(3, 30), (1, 10), (1, 20), (2, 20), (None, 10), (4, 20), (5, 5), (9, 100)], [])
            ),
            step("none", bag_b=([(9, 100)], [])),
            step("filled", bag_b=([], BAG_B.rows)),
        ),
    ),
    case("LIMIT 0", "SELECT id FROM orders ORDER BY id LIMIT 0", TOP, constant=True),
    case("ORDER BY ALL LIMIT", "SELECT customer, amount FROM orders ORDER BY ALL DESC LIMIT 4", TOP),
    case(
        "LIMIT over an aggregate",
        "SELECT customer, sum(amount) AS s FROM orders GROUP BY customer ORDER BY s DESC NULLS LAST, customer LIMIT 2",
        OVER_AGGREGATE,
    ),
    case(
        "LIMIT over an aggregate with ties at the boundary",
        "SELECT product, count(*) AS n FROM items GROUP BY product ORDER BY count(*) DESC LIMIT 2",
        OVER_AGGREGATE,
        fixed_order=True,
        limits=_TIES,
    ),
    case("LIMIT over DISTINCT", "SELECT DISTINCT k, v FROM bag_a ORDER BY v DESC, k DESC LIMIT 3", OVER_AGGREGATE),
    case(
        "LIMIT over a join",
        """
        SELECT o.id, i.product, i.qty * i.price AS line
        FROM orders o JOIN items i ON i.order_id = o.id ORDER BY line DESC NULLS LAST, o.id, i.product LIMIT 3
        """,
        TOP,
    ),
    case(
        "LIMIT over UNION ALL",
        "SELECT k, v FROM bag_a UNION ALL SELECT k, v FROM bag_b ORDER BY v DESC, k LIMIT 5",
        TOP,
    ),
    case(
        "LIMIT over a window",
        "SELECT id, sum(amount) OVER (ORDER BY id) AS running FROM orders ORDER BY running DESC NULLS LAST, id LIMIT 3",
        TOP,
    ),
    case(
        "LIMIT in a subquery under an aggregate",
        """
        SELECT count(*) AS n, sum(amount) AS s
        FROM (SELECT amount FROM orders ORDER BY amount DESC NULLS LAST, id LIMIT 4)
        """,
        SUBQUERY,
    ),
    case(
        "LIMIT in a subquery joined",
        """
        SELECT t.id, i.product
        FROM (SELECT id, amount FROM orders ORDER BY amount DESC NULLS LAST, id LIMIT 3) t
        LEFT JOIN items i ON i.order_id = t.id
        """,
        SUBQUERY,
    ),
    case(
        "LIMIT in IN",
        """
        SELECT order_id, product FROM items
        WHERE order_id IN (SELECT id FROM orders ORDER BY amount DESC NULLS LAST, id LIMIT 5)
        """,
        SUBQUERY,
    ),
    case(
        "LIMIT in a scalar subquery",
        "SELECT k, v, (SELECT name FROM dept ORDER BY budget DESC NULLS LAST, id LIMIT 1) AS richest FROM bag_a",
        SUBQUERY,
    ),
    case(
        "LIMIT of a LIMIT",
        "SELECT id, amount FROM (SELECT id, amount FROM orders ORDER BY id DESC LIMIT 6) ORDER BY amount, id LIMIT 3",
        SUBQUERY,
    ),
    case(
        "LIMIT over LIMITs in a union",
        """
        (SELECT id, amount AS x FROM orders ORDER BY amount DESC NULLS LAST, id LIMIT 2)
        UNION ALL (SELECT id, salary FROM emp ORDER BY salary DESC NULLS LAST, id LIMIT 2)
        """,
        SUBQUERY,
    ),
    case(
        "ORDER BY doubles with NaN and -0.0",
        "SELECT id, score FROM docs ORDER BY score DESC, id LIMIT 3",
        TOP,
    ),
    case("ORDER BY without LIMIT", "SELECT customer, amount FROM orders ORDER BY amount", UNSORTED),
    case(
        "SORT BY and DISTRIBUTE BY",
        "SELECT customer, amount FROM orders DISTRIBUTE BY customer SORT BY amount",
        UNSORTED,
    ),
)
