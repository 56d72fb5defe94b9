"""Window functions, frames, and what can be built over and under them."""

from __future__ import annotations

from .aggregates import SESSIONS
from .case import Case, Way, case
from .user_aggregates import register_pandas_aggregates

PARTITIONS = Way("the touched partitions are recomputed", "rows of the touched partitions")
WHOLE = Way("without PARTITION BY the one partition is recomputed", "the whole input")
SEVERAL = Way(
    "windows with different PARTITION BY are computed one over the other", "rows of the touched partitions, each"
)
FIRST = Way(
    "the change is ranked among the stored rows; a partition of which one was deleted is ranked again",
    "the stored rows of the touched partitions; the rows of those of which one was deleted",
)
TOP_N = Way("the touched partitions are ranked again, and only the first rows kept", "rows of the touched partitions")
OVER_AGGREGATE = Way("changed groups touch their partitions", "groups of the touched partitions")
UNDER_AGGREGATE = Way("changed window rows touch their groups", "rows of the touched partitions, then of the groups")
_ORDER = "ties in the order: the engine orders by all columns after those given"
_NO_QUALIFY = "Spark has no QUALIFY: filter a subquery"

CASES: tuple[Case, ...] = (
    case(
        "row_number, rank and dense_rank with ties in the values",
        """
        SELECT id, dept_id, salary, row_number() OVER w AS rn, rank() OVER r AS rk, dense_rank() OVER r AS dr
        FROM emp
        WINDOW w AS (PARTITION BY dept_id ORDER BY salary DESC, id), r AS (PARTITION BY dept_id ORDER BY salary DESC)
        """,
        PARTITIONS,
    ),
    case(
        "row_number with ties in the order",
        "SELECT id, customer, amount, row_number() OVER (PARTITION BY customer ORDER BY amount) AS rn FROM orders",
        PARTITIONS,
        fixed_order=True,
        limits=_ORDER,
    ),
    case(
        "rank with ties and duplicates",
        "SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM bag_a",
        PARTITIONS,
    ),
    case(
        "percent_rank and cume_dist",
        """
        SELECT id, percent_rank() OVER w AS p, cume_dist() OVER w AS c FROM emp
        WINDOW w AS (PARTITION BY dept_id ORDER BY salary)
        """,
        PARTITIONS,
    ),
    case(
        "ntile",
        "SELECT id, status, ntile(3) OVER (PARTITION BY status ORDER BY amount, id) AS third FROM orders",
        PARTITIONS,
    ),
    case(
        "lag and lead",
        """
        SELECT id, who, at, lag(val) OVER w AS before, lead(val, 2) OVER w AS after, lag(kind, 1, 'none') OVER w AS was
        FROM events WINDOW w AS (PARTITION BY who ORDER BY at, id)
        """,
        PARTITIONS,
    ),
    case(
        "lag and lead IGNORE NULLS",
        """
        SELECT id, who, lag(val) IGNORE NULLS OVER w AS before, lead(val) IGNORE NULLS OVER w AS after
        FROM events WINDOW w AS (PARTITION BY who ORDER BY at, id)
        """,
        PARTITIONS,
    ),
    case(
        "first_value, last_value and nth_value",
        """
        SELECT id, first_value(amount) OVER w AS f, last_value(amount) OVER w AS l, nth_value(amount, 2) OVER w AS n
        FROM orders
        WINDOW w AS (PARTITION BY customer ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
        """,
        PARTITIONS,
    ),
    case(
        "first, last and nth IGNORE NULLS",
        """
        SELECT id, first_value(amount) IGNORE NULLS OVER w AS f, last_value(amount) IGNORE NULLS OVER w AS l,
               nth_value(amount, 2) IGNORE NULLS OVER w AS n
        FROM orders WINDOW w AS (PARTITION BY customer ORDER BY id)
        """,
        PARTITIONS,
    ),
    case(
        "nth_value RESPECT NULLS",
        "SELECT id, nth_value(val, 2) RESPECT NULLS OVER (PARTITION BY kind ORDER BY id) AS n FROM events",
        PARTITIONS,
    ),
    case(
        "nth_value, first and last over RANGE frames with ties",
        """
        SELECT k, v, nth_value(v, 2) OVER (PARTITION BY k ORDER BY v) AS second,
               first_value(nullif(v % 3, 0)) IGNORE NULLS OVER (PARTITION BY k ORDER BY v % 3) AS first,
               last_value(v) OVER (PARTITION BY k ORDER BY v RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS last
        FROM bag_a
        """,
        PARTITIONS,
    ),
    case(
        "running sum by ROWS",
        """
        SELECT id, sum(amount) OVER (
                 PARTITION BY customer ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s
        FROM orders
        """,
        PARTITIONS,
    ),
    case(
        "running sum by RANGE, peers included",
        "SELECT id, day, sum(amount) OVER (PARTITION BY status ORDER BY day) AS s FROM orders",
        PARTITIONS,
    ),
    case(
        "sliding frame by ROWS",
        """
        SELECT id, avg(val) OVER (PARTITION BY who ORDER BY at, id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS m,
               count(*) OVER (PARTITION BY who ORDER BY at, id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS n
        FROM events
        """,
        PARTITIONS,
    ),
    case(
        "sliding frame by RANGE over numbers",
        "SELECT k, v, count(*) OVER (ORDER BY v RANGE BETWEEN 10 PRECEDING AND CURRENT ROW) AS n FROM bag_a",
        WHOLE,
    ),
    case(
        "sliding frame by RANGE over days",
        """
        SELECT id, day, sum(amount) OVER (
                 ORDER BY day RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING) AS s
        FROM orders
        """,
        WHOLE,
    ),
    case(
        "sliding frame by RANGE over timestamps",
        """
        SELECT id, who, max(val) OVER (
          PARTITION BY who ORDER BY at RANGE BETWEEN INTERVAL '30' MINUTE PRECEDING AND CURRENT ROW
        ) AS m FROM events
        """,
        PARTITIONS,
    ),
    case(
        "frame that looks ahead only",
        """
        SELECT id, min(salary) OVER (
                 PARTITION BY dept_id ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS low
        FROM emp
        """,
        PARTITIONS,
    ),
    case(
        "window over a whole partition",
        "SELECT id, salary, salary / sum(salary) OVER (PARTITION BY dept_id) AS share FROM emp",
        PARTITIONS,
    ),
    case(
        "window with neither partition nor order",
        "SELECT k, v, count(*) OVER () AS n, max(v) OVER () AS m FROM bag_a",
        WHOLE,
    ),
    case("window without PARTITION BY", "SELECT id, rank() OVER (ORDER BY amount DESC) AS place FROM orders", WHOLE),
    case(
        "named windows, one by the name of another",
        """
        SELECT id, sum(val) OVER w AS s, lag(val) OVER v AS p FROM events
        WINDOW w AS (PARTITION BY kind ORDER BY id), v AS w
        """,
        PARTITIONS,
        limits="Spark cannot refine a named window",
    ),
    case(
        "several PARTITION BYs in one query",
        """
        SELECT id, count(*) OVER (PARTITION BY customer) AS by_customer,
               sum(amount) OVER (PARTITION BY status) AS by_status,
               rank() OVER (PARTITION BY day ORDER BY amount DESC, id) AS of_day, count(*) OVER () AS in_all
        FROM orders
        """,
        SEVERAL,
    ),
    case(
        "PARTITION BY expressions and several columns",
        "SELECT id, row_number() OVER (PARTITION BY lower(customer), amount > 50 ORDER BY id) AS rn FROM orders",
        PARTITIONS,
    ),
    case(
        "ORDER BY with NULLS FIRST and LAST",
        """
        SELECT id, row_number() OVER (PARTITION BY status ORDER BY amount ASC NULLS LAST, id DESC) AS a,
               row_number() OVER (PARTITION BY status ORDER BY day DESC NULLS FIRST, id) AS b
        FROM orders
        """,
        PARTITIONS,
    ),
    case(
        "rank plus one",
        "SELECT id, rank() OVER (PARTITION BY dept_id ORDER BY salary DESC) + 1 AS r FROM emp",
        PARTITIONS,
    ),
    case(
        "CASE over row_number",
        """
        SELECT id, CASE WHEN row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) <= 2
                   THEN 'top' ELSE 'rest' END AS c
        FROM orders
        """,
        PARTITIONS,
    ),
    case(
        "COALESCE over lag",
        "SELECT id, val - coalesce(lag(val) OVER (PARTITION BY who ORDER BY at, id), 0) AS step FROM events",
        PARTITIONS,
    ),
    case(
        "CAST of row_number",
        "SELECT 'no ' || cast(row_number() OVER (PARTITION BY kind ORDER BY id) AS STRING) AS label, kind FROM events",
        PARTITIONS,
    ),
    case(
        "two windows in one expression",
        """
        SELECT id, rank() OVER (PARTITION BY dept_id ORDER BY salary DESC)
                   - dense_rank() OVER (ORDER BY salary DESC) AS d
        FROM emp
        """,
        SEVERAL,
    ),
    case(
        "window over aggregates",
        """
        SELECT customer, sum(amount) AS s, rank() OVER (ORDER BY sum(amount) DESC NULLS LAST) AS place,
               sum(count(*)) OVER () AS n
        FROM orders GROUP BY customer
        """,
        OVER_AGGREGATE,
    ),
    case(
        "window over an aggregate, partitioned",
        """
        SELECT dept_id, boss_id, n, rank() OVER (PARTITION BY dept_id ORDER BY n DESC) AS r
        FROM (SELECT dept_id, boss_id, count(*) AS n FROM emp GROUP BY dept_id, boss_id)
        """,
        OVER_AGGREGATE,
    ),
    case(
        "aggregate plus a window in one expression",
        "SELECT status, count(*) + row_number() OVER (ORDER BY status) AS x FROM orders GROUP BY status",
        OVER_AGGREGATE,
    ),
    case(
        "aggregate over windows",
        """
        SELECT rn, count(*) AS n, sum(amount) AS s
        FROM (SELECT amount, row_number() OVER (PARTITION BY customer ORDER BY id) AS rn FROM orders) GROUP BY rn
        """,
        UNDER_AGGREGATE,
    ),
    case(
        "window over a window",
        """
        SELECT id, step, sum(step) OVER (PARTITION BY who ORDER BY id) AS back
        FROM (SELECT id, who, val - lag(val, 1, 0) OVER (PARTITION BY who ORDER BY id) AS step FROM events)
        """,
        SEVERAL,
    ),
    case(
        "sessions by gaps: window, window, aggregate",
        """
        SELECT who, session, count(*) AS n, min(at) AS since
        FROM (
          SELECT who, at, sum(is_new) OVER (PARTITION BY who ORDER BY at, id) AS session
          FROM (
            SELECT id, who, at,
                   CASE WHEN at - lag(at) OVER (PARTITION BY who ORDER BY at, id) < INTERVAL '20' MINUTE
                        THEN 0 ELSE 1 END AS is_new
            FROM events
          )
        )
        GROUP BY who, session
        """,
        UNDER_AGGREGATE,
    ),
    case(
        "window over a join",
        """
        SELECT d.name AS dept_name, e.name, rank() OVER (PARTITION BY d.id ORDER BY e.salary DESC) AS r
        FROM dept d JOIN emp e ON e.dept_id = d.id
        """,
        PARTITIONS,
    ),
    case(
        "window over an aggregate over a join",
        """
        SELECT customer, product, q, rank() OVER (PARTITION BY customer ORDER BY q DESC NULLS LAST) AS r
        FROM (
          SELECT o.customer, i.product, sum(i.qty) AS q
          FROM orders o LEFT JOIN items i ON i.order_id = o.id GROUP BY o.customer, i.product
        )
        """,
        OVER_AGGREGATE,
    ),
    case(
        "join over windows",
        """
        SELECT a.id, b.id AS next_id, b.val - a.val AS diff
        FROM (SELECT id, val, who, row_number() OVER (PARTITION BY who ORDER BY at, id) AS rn FROM events) a
        JOIN (SELECT id, val, who, row_number() OVER (PARTITION BY who ORDER BY at, id) AS rn FROM events) b
          ON a.who = b.who AND b.rn = a.rn + 1
        """,
        PARTITIONS,
    ),
    case(
        "QUALIFY in its Spark form",
        """
        SELECT id, customer, amount
        FROM (SELECT *, sum(amount) OVER (PARTITION BY customer) AS total FROM orders) WHERE amount * 2 >= total
        """,
        PARTITIONS,
        limits=_NO_QUALIFY,
    ),
    case(
        "DISTINCT over a window",
        "SELECT DISTINCT customer, count(*) OVER (PARTITION BY customer) AS n FROM orders",
        UNDER_AGGREGATE,
    ),
    case(
        "top-N by row_number",
        """
        SELECT dept_id, name, salary, rn
        FROM (SELECT *, row_number() OVER (PARTITION BY dept_id ORDER BY salary DESC NULLS LAST, id) AS rn FROM emp)
        WHERE rn <= 2
        """,
        TOP_N,
        limits=_NO_QUALIFY,
    ),
    case(
        "latest row per key by row_number",
        """
        SELECT who, kind, val
        FROM (SELECT *, row_number() OVER (PARTITION BY who ORDER BY at DESC, id DESC) AS rn FROM events) WHERE rn = 1
        """,
        TOP_N,
    ),
    case(
        "top-N by rank keeps ties",
        """
        SELECT dept_id, name FROM (SELECT *, rank() OVER (PARTITION BY dept_id ORDER BY salary DESC) AS r FROM emp)
        WHERE r = 1
        """,
        TOP_N,
    ),
    case(
        "top-N by dense_rank without partition",
        """
        SELECT id, amount FROM (SELECT *, dense_rank() OVER (ORDER BY amount DESC NULLS LAST) AS r FROM orders)
        WHERE r <= 2
        """,
        WHOLE,
    ),
    case(
        "the first rows of each partition, all columns shown",
        """
        SELECT name, dept_id AS d, salary
        FROM (SELECT *, row_number() OVER (PARTITION BY dept_id ORDER BY salary DESC NULLS LAST, id) AS rn FROM emp)
        WHERE 3 > rn
        """,
        FIRST,
        limits=_NO_QUALIFY,
    ),
    case(
        "the first of equal rows in each partition",
        "SELECT k, v, rn FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS rn FROM bag_a) WHERE rn <= 2",
        FIRST,
    ),
    case(
        "the first row of each partition",
        "SELECT k, v FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM bag_a) WHERE rn = 1",
        FIRST,
    ),
    case(
        "first ranks of two kinds with ties",
        """
        SELECT d, k, v, r
        FROM (SELECT k, v, rank() OVER w AS r, dense_rank() OVER w AS d FROM bag_a WINDOW w AS (PARTITION BY k ORDER BY v))
        WHERE r <= 3 AND d < 3
        """,
        FIRST,
    ),
    case(
        "first row numbers and ranks with ties",
        """
        SELECT n, r, k, v
        FROM (SELECT k, v, rank() OVER w AS r, row_number() OVER w AS n FROM bag_a WINDOW w AS (PARTITION BY k ORDER BY v))
        WHERE r <= 2 AND n <= 3
        """,
        TOP_N,
    ),
    case(
        "first ranks of partitions by two columns, some of them NULL",
        """
        SELECT day, status, amount, id
        FROM (SELECT *, rank() OVER (PARTITION BY status, day ORDER BY amount DESC) AS r FROM orders) WHERE r <= 1
        """,
        FIRST,
    ),
    case(
        "first ranks of groups",
        """
        SELECT customer, status, total FROM (
          SELECT customer, status, total, dense_rank() OVER (PARTITION BY status ORDER BY total DESC NULLS LAST) AS r
          FROM (SELECT customer, status, sum(amount) AS total FROM orders GROUP BY customer, status)) WHERE r <= 2
        """,
        FIRST,
    ),
    case(
        "first ranks of a join",
        """
        SELECT dept_name, name, salary
        FROM (SELECT d.name AS dept_name, e.name, e.salary, rank() OVER (PARTITION BY d.name ORDER BY e.salary DESC) AS r
              FROM emp e LEFT JOIN dept d ON e.dept_id = d.id) WHERE r < 3
        """,
        FIRST,
    ),
    case(
        "first ranks of all rows, all columns shown",
        "SELECT id, amount, r FROM (SELECT id, amount, rank() OVER (ORDER BY amount DESC) AS r FROM orders) WHERE r <= 2",
        Way(
            "the change is ranked among the stored rows; if one of them was deleted, all rows are ranked again",
            "the stored rows; all rows if one of them was deleted",
        ),
    ),
    case(
        "aggregate functions as windows: collect, distinct set, ordered",
        """
        SELECT id, collect_list(val) OVER (PARTITION BY who ORDER BY at, id) AS so_far,
               array_sort(collect_set(kind) OVER (PARTITION BY who)) AS kinds
        FROM events
        """,
        PARTITIONS,
    ),
    case(
        "count_if over a window",
        "SELECT id, count_if(status = 'paid') OVER (PARTITION BY customer) AS paid FROM orders",
        PARTITIONS,
        limits="Spark has no FILTER over a window",
    ),
    case(
        "window of variances",
        "SELECT id, stddev_pop(val) OVER (PARTITION BY kind) AS d FROM events",
        PARTITIONS,
        approximate=True,
    ),
    case(
        "window of a pandas aggregate",
        "SELECT id, who, pd_range(val) OVER (PARTITION BY who) AS r FROM events",
        PARTITIONS,
        register=register_pandas_aggregates,
    ),
    case(
        "window partitioned by a double with NaN and -0.0",
        "SELECT id, score, count(*) OVER (PARTITION BY score) AS n FROM docs",
        PARTITIONS,
    ),
    case(
        "last value carried forward",
        """
        SELECT id, who, last_value(val, true) OVER (PARTITION BY who ORDER BY at, id ROWS UNBOUNDED PRECEDING)
               AS filled
        FROM events
        """,
        PARTITIONS,
    ),
    case(
        "window under UNION ALL",
        """
        SELECT k, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM bag_a
        UNION ALL SELECT k, dense_rank() OVER (PARTITION BY k ORDER BY v) FROM bag_b
        """,
        PARTITIONS,
    ),
    case(
        "session windows of rows at the same time",
        """
        SELECT who, session_window.start AS since, session_window.end AS until, count(*) AS n
        FROM (SELECT who, date_trunc('HOUR', at) AS at FROM events) GROUP BY who, session_window(at, '1 hour')
        """,
        SESSIONS,
    ),
)
