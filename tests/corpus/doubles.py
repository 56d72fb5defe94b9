"""Sums of doubles below every operator: their last digits depend on the order of rows, so they are remembered."""

from __future__ import annotations

from typing import Final

from .case import Case, Way, case

_SUMS: Final = "(SELECT bin, sum(x) AS total FROM weights GROUP BY bin)"

REMEMBERED: Final = Way(
    "sums of doubles that another operator reads are stored in a state table and replaced by key: "
    "they have the same digits everywhere",
    "rows of the touched groups",
)
ONE_ORDER: Final = Way("doubles are added in one order in each partition", "rows of the touched partitions")


def _over(title: str, query: str, way: Way = REMEMBERED) -> Case:
    return case(title, query.replace("SUMS", _SUMS), way, approximate=True)


CASES: Final[tuple[Case, ...]] = (
    _over("sum of doubles, its key hidden", "SELECT sum(x) AS total FROM weights GROUP BY bin"),
    _over("sum of doubles, compared", "SELECT sum(x) > 2 AS is_much FROM weights GROUP BY bin"),
    _over("sum of doubles, inner join", "SELECT d.name, s.total FROM SUMS s JOIN dept d ON d.id = s.bin"),
    _over(
        "sum of doubles, left join and rank",
        """
        SELECT d.name, s.total, rank() OVER (PARTITION BY d.city ORDER BY s.total) AS place
        FROM dept d LEFT JOIN SUMS s ON d.id = s.bin
        """,
    ),
    _over("sum of doubles, full join", "SELECT d.name, s.total FROM dept d FULL JOIN SUMS s ON d.id = s.bin"),
    _over("sum of doubles, semi join", "SELECT * FROM SUMS s WHERE EXISTS (SELECT 1 FROM dept d WHERE d.id = s.bin)"),
    _over("sum of doubles, anti join", "SELECT * FROM SUMS s WHERE s.bin NOT IN (SELECT id FROM dept)"),
    _over("join on a sum of doubles", "SELECT a.bin, b.bin AS other FROM SUMS a JOIN SUMS b ON a.total = b.total"),
    _over("sum of doubles, union", "SELECT bin, total FROM SUMS s UNION ALL SELECT bin, x FROM weights"),
    _over("sum of doubles, distinct", "SELECT DISTINCT total FROM SUMS s"),
    _over("GROUP BY a sum of doubles", "SELECT total, count(*) AS n FROM SUMS s GROUP BY total"),
    _over("sum of sums of doubles", "SELECT sum(total) AS total, avg(total) AS mean FROM SUMS s"),
    _over(
        "HAVING over a sum of doubles, joined",
        """
        SELECT d.name, s.bin FROM dept d
        JOIN (SELECT bin FROM weights GROUP BY bin HAVING sum(x) > 0.5) s ON d.id = s.bin
        """,
    ),
    _over(
        "share of a sum of doubles: a scalar subquery",
        "SELECT id, x / (SELECT sum(x) FROM weights) AS share FROM weights",
    ),
    _over(
        "LATERAL sum of doubles",
        "SELECT d.name, s.total FROM dept d, LATERAL (SELECT sum(x) AS total FROM weights w WHERE w.bin = d.id) s",
    ),
    _over("top-k by a sum of doubles", "SELECT bin, sum(x) AS total FROM weights GROUP BY bin ORDER BY total LIMIT 2"),
    _over(
        "INTERSECT of sums of doubles",
        "SELECT bin, total FROM SUMS s INTERSECT SELECT bin, sum(x) AS total FROM weights GROUP BY bin",
    ),
    _over("EXCEPT of sums of doubles", "SELECT bin, total FROM SUMS s EXCEPT SELECT bin, x FROM weights"),
    _over(
        "recursion from a sum of doubles",
        """
        WITH RECURSIVE halves AS (
            SELECT bin, total, 0 AS depth FROM SUMS s
            UNION ALL
            SELECT bin, total / 2, depth + 1 FROM halves WHERE depth < 3
        ) SELECT * FROM halves
        """,
    ),
    _over(
        "spread of doubles, ranked",
        """
        SELECT bin, spread, row_number() OVER (ORDER BY spread, bin) AS place
        FROM (SELECT bin, stddev_pop(x) AS spread FROM weights GROUP BY bin)
        """,
    ),
    _over(
        "sum of doubles over a partition", "SELECT id, x, sum(x) OVER (PARTITION BY bin) AS t FROM weights", ONE_ORDER
    ),
    _over(
        "running sum of doubles with peers, grouped",
        """
        SELECT bin, max(running) AS most, count(DISTINCT running) AS steps
        FROM (SELECT bin, sum(x) OVER (PARTITION BY bin ORDER BY id DIV 3) AS running FROM weights) GROUP BY bin
        """,
        ONE_ORDER,
    ),
    _over(
        "moving sum of doubles over a RANGE, filtered",
        """
        SELECT id FROM (SELECT id, sum(x) OVER (PARTITION BY bin ORDER BY id RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS s
        FROM weights) WHERE s > 1
        """,
    ),
)
