"""Set operations, with exact multiplicities."""

from __future__ import annotations

from .case import Case, Way, case
from .rounds import step

CONCATENATED = Way("the changes of both sides are combined", "changed rows only")
COUNTED = Way("the touched rows are looked up again on both sides", "copies of the touched rows")
BOTH = Way("counts of the row on both sides decide; touched rows are counted again", "the touched rows on both sides")
NESTED = Way("each operation passes its changed rows to the one above", "the touched rows, per operation")

_MULTIPLICITIES = (
    step("a copy more on the left", bag_a=([], [(1, 10), (5, 10)])),
    step("copies more on the right", bag_b=([], [(1, 10), (1, 10), (1, 10), (4, 20)])),
    step("a copy less on the left", bag_a=([(1, 10)], [])),
    step("copies less on the right", bag_b=([(1, 10), (1, 10)], [])),
    step("NULL rows on both sides", bag_a=([], [(None, None), (None, 10)]), bag_b=([], [(None, None)])),
    step("the row changes sides", bag_a=([(3, 30)], []), bag_b=([], [(3, 30)])),
    step("the last copies go on both sides", bag_a=([(4, 20), (4, 20)], []), bag_b=([(4, 20), (4, 20)], [])),
)

CASES: tuple[Case, ...] = (
    case("UNION ALL", "SELECT k, v FROM bag_a UNION ALL SELECT k, v FROM bag_b", CONCATENATED),
    case(
        "UNION ALL of a table with itself",
        "SELECT k, v FROM bag_a UNION ALL SELECT k, v FROM bag_a WHERE v > 10",
        CONCATENATED,
    ),
    case("UNION", "SELECT k, v FROM bag_a UNION SELECT k, v FROM bag_b", COUNTED),
    case("INTERSECT", "SELECT k, v FROM bag_a INTERSECT SELECT k, v FROM bag_b", BOTH),
    case("INTERSECT ALL", "SELECT k, v FROM bag_a INTERSECT ALL SELECT k, v FROM bag_b", BOTH),
    case("EXCEPT", "SELECT k, v FROM bag_a EXCEPT SELECT k, v FROM bag_b", BOTH),
    case("EXCEPT ALL", "SELECT k, v FROM bag_a EXCEPT ALL SELECT k, v FROM bag_b", BOTH),
    case("MINUS ALL", "SELECT k FROM bag_a MINUS ALL SELECT k FROM bag_c", BOTH),
    case(
        "multiplicities of UNION",
        "SELECT k, v FROM bag_a UNION DISTINCT SELECT k, v FROM bag_b",
        COUNTED,
        rounds=_MULTIPLICITIES,
        constant=True,
    ),
    case(
        "multiplicities of INTERSECT ALL",
        "SELECT k, v FROM bag_a INTERSECT ALL SELECT k, v FROM bag_b",
        BOTH,
        rounds=_MULTIPLICITIES,
    ),
    case(
        "multiplicities of EXCEPT ALL",
        "SELECT k, v FROM bag_a EXCEPT ALL SELECT k, v FROM bag_b",
        BOTH,
        rounds=_MULTIPLICITIES,
    ),
    case(
        "chain of UNIONs, the last with ALL",
        "SELECT k FROM bag_a UNION SELECT k FROM bag_b UNION ALL SELECT k FROM bag_c",
        NESTED,
    ),
    case(
        "chain of UNIONs, the first with ALL",
        "SELECT k, v FROM bag_a UNION ALL SELECT k, v FROM bag_b UNION SELECT k, v FROM bag_c",
        NESTED,
    ),
    case(
        "precedence: INTERSECT before UNION",
        "SELECT k, v FROM bag_a UNION SELECT k, v FROM bag_b INTERSECT SELECT k, v FROM bag_c",
        NESTED,
    ),
    case(
        "nesting by parentheses",
        """
        (SELECT k, v FROM bag_a EXCEPT SELECT k, v FROM bag_b)
        UNION ALL (SELECT k, v FROM bag_b EXCEPT SELECT k, v FROM bag_a)
        """,
        NESTED,
    ),
    case(
        "EXCEPT ALL of INTERSECT ALL",
        "SELECT k, v FROM bag_a EXCEPT ALL (SELECT k, v FROM bag_b INTERSECT ALL SELECT k, v FROM bag_c)",
        NESTED,
    ),
    case("EXCEPT over EXCEPT", "SELECT k FROM bag_a EXCEPT (SELECT k FROM bag_b EXCEPT SELECT k FROM bag_c)", NESTED),
    case(
        "UNION under an aggregate",
        "SELECT k, count(*) AS n, sum(v) AS s FROM (SELECT * FROM bag_a UNION ALL SELECT * FROM bag_b) GROUP BY k",
        NESTED,
    ),
    case(
        "set operation over aggregates",
        "SELECT k, max(v) AS m FROM bag_a GROUP BY k INTERSECT SELECT k, max(v) AS m FROM bag_b GROUP BY k",
        NESTED,
    ),
    case(
        "set operation over joins",
        """
        SELECT o.customer FROM orders o JOIN items i ON i.order_id = o.id
        EXCEPT SELECT o.customer FROM orders o LEFT JOIN items i ON i.order_id = o.id WHERE i.qty > 5
        """,
        NESTED,
    ),
    case(
        "join over set operations",
        """
        SELECT x.k, x.v, c.v AS w
        FROM (SELECT k, v FROM bag_a INTERSECT SELECT k, v FROM bag_b) x LEFT JOIN bag_c c ON c.k = x.k
        """,
        NESTED,
    ),
    case(
        "UNION of types that widen", "SELECT id, amount AS x FROM orders UNION SELECT qty, order_id FROM items", COUNTED
    ),
    case(
        "UNION of structs and arrays",
        "SELECT span AS x, tags FROM docs UNION SELECT named_struct('lo', k, 'hi', v), array('red') FROM bag_a",
        COUNTED,
    ),
    case(
        "EXCEPT over doubles with NaN and -0.0",
        "SELECT score FROM docs EXCEPT SELECT cast(v AS DOUBLE) / 10 - 1 FROM bag_a",
        BOTH,
    ),
    case(
        "UNION with a constant row",
        "SELECT status, count(*) AS n FROM orders GROUP BY status UNION ALL SELECT 'all', 0",
        CONCATENATED,
    ),
)
