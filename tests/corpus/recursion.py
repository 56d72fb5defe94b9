"""Recursive common table expressions."""

from __future__ import annotations

from .case import Case, Way, case
from .rounds import step
from .tables import EMP, Row

LINEAR = Way(
    "the change of the start and of the edges is followed through the recursion until nothing new appears; each row "
    "counts its derivations, so deletes are exact",
    "rows reached from the changed ones",
)
AGGREGATED = Way(
    "the change of the recursion is handled like any change", "rows reached from the changed ones, then the groups"
)
CONSTANT = Way("no table is read inside, so the rows are constants", "nothing")
_UNION_ALL = "Spark has UNION ALL only, so a row shows once per derivation"

_EMP = {row[0]: row for row in EMP.rows}


def _with_boss(number: int, boss: int | None) -> Row:
    row = _EMP[number]
    return (*row[:3], boss, *row[4:])


_CHAIN = tuple((f"n{i:03}", f"n{i + 1:03}", 1) for i in range(104))

CASES: tuple[Case, ...] = (
    case(
        "hierarchy with depth",
        """
        WITH RECURSIVE tree(id, name, depth) AS (
          SELECT id, name, 0 FROM emp WHERE boss_id IS NULL
          UNION ALL SELECT e.id, e.name, t.depth + 1 FROM emp e JOIN tree t ON e.boss_id = t.id
        ) SELECT * FROM tree
        """,
        LINEAR,
    ),
    case(
        "hierarchy with a path as text",
        """
        WITH RECURSIVE tree(id, path) AS (
          SELECT id, cast(name AS STRING) FROM emp WHERE boss_id IS NULL
          UNION ALL SELECT e.id, t.path || '/' || e.name FROM emp e JOIN tree t ON e.boss_id = t.id
        ) SELECT * FROM tree
        """,
        LINEAR,
    ),
    case(
        "reachable nodes, once per path",
        """
        WITH RECURSIVE reach(node) AS (
          SELECT 'a' UNION ALL SELECT e.dst FROM edges e JOIN reach r ON e.src = r.node
        ) SELECT node FROM reach
        """,
        LINEAR,
        limits=_UNION_ALL,
    ),
    case(
        "reachable pairs with DISTINCT",
        """
        WITH RECURSIVE reach(src, dst) AS (
          SELECT src, dst FROM edges UNION ALL SELECT r.src, e.dst FROM edges e JOIN reach r ON e.src = r.dst
        ) SELECT DISTINCT src, dst FROM reach
        """,
        AGGREGATED,
    ),
    case(
        "cheapest path",
        """
        WITH RECURSIVE paths(src, dst, cost, path) AS (
          SELECT src, dst, cost, array(src, dst) FROM edges
          UNION ALL SELECT p.src, e.dst, p.cost + e.cost, array_append(p.path, e.dst)
          FROM edges e JOIN paths p ON e.src = p.dst
        ) SELECT src, dst, min(cost) AS cost, count(*) AS ways FROM paths GROUP BY src, dst
        """,
        AGGREGATED,
    ),
    case(
        "an edge is deleted where another path remains",
        """
        WITH RECURSIVE reach(node) AS (
          SELECT 'a' UNION ALL SELECT e.dst FROM edges e JOIN reach r ON e.src = r.node
        ) SELECT node, count(*) AS ways FROM reach GROUP BY node
        """,
        AGGREGATED,
        rounds=(
            step("one of two equal edges goes", edges=([("c", "d", 1)], [])),
            step("one way goes, others remain", edges=([("b", "d", 5)], [])),
            step("another goes, one remains", edges=([("a", "c", 4)], [])),
            step("the last way goes", edges=([("b", "c", 1)], [])),
            step("a way round comes", edges=([], [("a", "d", 9)])),
            step("an edge moves", edges=([("a", "d", 9)], [("b", "e", 1)])),
            step("the start loses its edges", edges=([("a", "b", 1)], [])),
        ),
    ),
    case(
        "a subtree is moved",
        """
        WITH RECURSIVE tree(id, root, depth) AS (
          SELECT id, id, 0 FROM emp WHERE boss_id IS NULL
          UNION ALL SELECT e.id, t.root, t.depth + 1 FROM emp e JOIN tree t ON e.boss_id = t.id
        ) SELECT * FROM tree
        """,
        LINEAR,
        rounds=(
            step("an inner node moves with all below", emp=([_EMP[5]], [_with_boss(5, 4)])),
            step("a subtree becomes a tree of its own", emp=([_EMP[2]], [_with_boss(2, None)])),
            step("two trees become one", emp=([_with_boss(2, None)], [_with_boss(2, 1)])),
            step("a subtree loses its root and comes apart", emp=([_with_boss(2, 1)], [])),
            step("the root of all goes", emp=([_EMP[1]], [])),
            step("another root comes, with a subtree moved at once", emp=([_EMP[3]], [_EMP[1], _with_boss(3, None)])),
        ),
    ),
    case(
        "deeper than a hundred levels",
        """
        WITH RECURSIVE reach(node, depth) MAX RECURSION LEVEL 300 AS (
          SELECT 'n000', 0 UNION ALL SELECT e.dst, r.depth + 1 FROM edges e JOIN reach r ON e.src = r.node
        ) SELECT max(depth) AS deepest, count(*) AS n, max(node) AS last FROM reach
        """,
        AGGREGATED,
        limits="to the user's limit of levels",
        rounds=(
            step("a chain of 104 edges", edges=([], _CHAIN)),
            step("it breaks in the middle", edges=([_CHAIN[60]], [])),
            step("it is mended by a short cut", edges=([], [("n060", "n070", 1)])),
            step("it grows at the end", edges=([], [("n104", "n105", 1)])),
        ),
    ),
    case(
        "several recursions in a query",
        """
        WITH RECURSIVE up(id, boss) AS (
          SELECT id, boss_id FROM emp WHERE boss_id IS NOT NULL
          UNION ALL SELECT u.id, e.boss_id FROM up u JOIN emp e ON e.id = u.boss WHERE e.boss_id IS NOT NULL
        ), reach(node) AS (
          SELECT 'a' UNION ALL SELECT e.dst FROM edges e JOIN reach r ON e.src = r.node
        )
        SELECT 'bosses' AS what, count(*) AS n FROM up UNION ALL SELECT 'nodes', count(*) FROM reach
        """,
        AGGREGATED,
    ),
    case(
        "a recursion over a recursion",
        """
        WITH RECURSIVE reach(node, depth) AS (
          SELECT 'a', 0 UNION ALL SELECT e.dst, r.depth + 1 FROM edges e JOIN reach r ON e.src = r.node
        ), down(depth, n) AS (
          SELECT depth, 0 FROM reach UNION ALL SELECT depth - 1, n + 1 FROM down WHERE depth > 0
        )
        SELECT depth, n, count(*) AS c FROM down GROUP BY depth, n
        """,
        AGGREGATED,
    ),
    case(
        "recursion in a join",
        """
        WITH RECURSIVE tree(id, root) AS (
          SELECT id, id FROM emp WHERE boss_id IS NULL
          UNION ALL SELECT e.id, t.root FROM emp e JOIN tree t ON e.boss_id = t.id
        )
        SELECT t.root, o.customer, o.amount FROM tree t JOIN orders o ON o.id = t.id
        """,
        AGGREGATED,
    ),
    case(
        "recursion in a left join and an aggregate",
        """
        WITH RECURSIVE under(boss, id) AS (
          SELECT boss_id, id FROM emp WHERE boss_id IS NOT NULL
          UNION ALL SELECT u.boss, e.id FROM under u JOIN emp e ON e.boss_id = u.id
        )
        SELECT e.id, count(u.id) AS people, sum(x.salary) AS cost
        FROM emp e LEFT JOIN under u ON u.boss = e.id LEFT JOIN emp x ON x.id = u.id GROUP BY e.id
        """,
        AGGREGATED,
    ),
    case(
        "recursion used twice",
        """
        WITH RECURSIVE reach(node) AS (
          SELECT 'a' UNION ALL SELECT e.dst FROM edges e JOIN reach r ON e.src = r.node
        )
        SELECT a.node, count(*) AS n FROM reach a JOIN reach b ON a.node < b.node GROUP BY a.node
        """,
        AGGREGATED,
    ),
    case(
        "recursion in EXISTS",
        """
        WITH RECURSIVE reach(node) AS (
          SELECT 'b' UNION ALL SELECT e.dst FROM edges e JOIN reach r ON e.src = r.node
        )
        SELECT src, dst FROM edges e WHERE NOT EXISTS (SELECT 1 FROM reach r WHERE r.node = e.src)
        """,
        AGGREGATED,
    ),
    case(
        "recursion over two tables, with a filter",
        """
        WITH RECURSIVE chain(id, spent) AS (
          SELECT e.id, o.amount FROM emp e JOIN orders o ON o.id = e.id WHERE e.boss_id IS NULL
          UNION ALL
          SELECT e.id, cast(c.spent + coalesce(o.amount, 0) AS DECIMAL(10,2))
          FROM chain c JOIN emp e ON e.boss_id = c.id LEFT JOIN orders o ON o.id = e.id WHERE c.spent < 1000
        ) SELECT id, spent FROM chain
        """,
        LINEAR,
    ),
    case(
        "counting up from a table's rows",
        """
        WITH RECURSIVE steps(k, n) AS (
          SELECT k, 1 FROM bag_a WHERE k IS NOT NULL UNION ALL SELECT k, n + 1 FROM steps WHERE n < k
        ) SELECT k, n FROM steps
        """,
        LINEAR,
    ),
    case(
        "recursion without a table, joined to one",
        """
        WITH RECURSIVE days(day) AS (
          SELECT DATE '2024-01-01' UNION ALL SELECT day + 1 FROM days WHERE day < DATE '2024-01-07'
        )
        SELECT d.day, count(o.id) AS n FROM days d LEFT JOIN orders o ON o.day = d.day GROUP BY d.day
        """,
        CONSTANT,
    ),
    case(
        "recursion in a view's rollup",
        """
        WITH RECURSIVE tree(id, dept_id, depth) AS (
          SELECT id, dept_id, 0 FROM emp WHERE boss_id IS NULL
          UNION ALL SELECT e.id, e.dept_id, t.depth + 1 FROM emp e JOIN tree t ON e.boss_id = t.id
        )
        SELECT dept_id, depth, count(*) AS n FROM tree GROUP BY ROLLUP(dept_id, depth)
        """,
        AGGREGATED,
    ),
)
