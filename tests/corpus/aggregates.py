"""Every clause that goes with aggregates: GROUP BY in all its forms, HAVING, FILTER, DISTINCT, PIVOT, time windows."""

from __future__ import annotations

from .aggregate_functions import ADDITIVE, EXPANDED, EXTREME, ORDER, RESCAN
from .case import Case, Way, case
from .rounds import Change, Round, step
from .tables import ORDERS

DISTINCT = Way("the touched groups are recomputed", "rows of the touched groups")
DEDUPLICATED = Way("the touched rows are looked up again", "copies of the touched rows")
PIVOTED = Way("one aggregate with one filter per pivot value, by the remaining columns", "rows of the touched groups")
NESTED = Way("each aggregate passes its changed groups to the one above", "rows of the touched groups, per level")
HAVING = Way("groups are maintained, then filtered; a group enters or leaves as its value crosses", "see the aggregate")
EXPRESSION = Way("the aggregates are maintained, the expression is computed from them", "see the aggregates")
SLIDING = Way("each row goes to every window that covers it, then as any aggregate", "rows of the touched windows")
SESSIONS = Way("the sessions of the touched keys are built again", "rows of the touched keys")

_ADA, _BO = ORDERS.rows[0], ORDERS.rows[2]

_LONGS = "CASE v WHEN 10 THEN -9223372036854775808 WHEN 20 THEN 9223372036854775807 ELSE v END"
_TO_THE_OTHER_END = (
    step("the least goes", bag_b=([(1, 10), (None, 10), (5, 10)], [(5, 30)])),
    step("the greatest becomes the least", bag_b=([(4, 20), (2, 20)], [(4, 10), (2, 10), (2, 30)])),
    step("the least becomes the greatest", bag_b=([(4, 10)], [(4, 20), (6, 10), (6, 20)])),
    step("all at once", bag_b=([(4, 20), (1, 20), (6, 10)], [(4, 10), (1, 10)])),
)

CASES: tuple[Case, ...] = (
    case(
        "aggregate without GROUP BY: one row, also over nothing",
        "SELECT count(*) AS n, sum(qty) AS q, min(price) AS low, max(product) AS last FROM items",
        ADDITIVE,
    ),
    case(
        "aggregate without GROUP BY over a filter that may pass nothing",
        "SELECT count(*) AS n, sum(amount) AS s, avg(amount) AS m FROM orders WHERE status = 'open'",
        ADDITIVE,
    ),
    case("GROUP BY with NULL keys", "SELECT k, count(*) AS n, sum(v) AS s FROM bag_a GROUP BY k", ADDITIVE),
    case(
        "GROUP BY several columns",
        "SELECT customer, status, count(*) AS n, sum(amount) AS s FROM orders GROUP BY 1, 2",
        ADDITIVE,
    ),
    case("GROUP BY ALL", "SELECT lower(customer) AS c, status, max(amount) AS m FROM orders GROUP BY ALL", EXTREME),
    case(
        "GROUP BY an expression",
        "SELECT month(hired) AS m, count(*) AS n, min(salary) AS low FROM emp GROUP BY month(hired)",
        EXTREME,
    ),
    case(
        "GROUP BY a column that is not shown",
        "SELECT count(*) AS n, sum(amount) AS s FROM orders GROUP BY customer",
        ADDITIVE,
    ),
    case("GROUP BY a double with NaN and -0.0", "SELECT score, count(*) AS n FROM docs GROUP BY score", ADDITIVE),
    case("GROUP BY a struct", "SELECT span, count(*) AS n, min(id) AS first_id FROM docs GROUP BY span", EXTREME),
    case("GROUP BY an array", "SELECT tags, count(*) AS n, max(id) AS last_id FROM docs GROUP BY tags", EXTREME),
    case("GROUP BY binary", "SELECT raw, count(*) AS n FROM docs GROUP BY raw", ADDITIVE),
    case(
        "GROUP BY a truncated timestamp",
        "SELECT date_trunc('HOUR', at) AS hour, count(*) AS n, sum(val) AS s FROM events GROUP BY 1",
        ADDITIVE,
    ),
    case(
        "GROUP BY a tumbling time window",
        """
        SELECT window.start AS since, who, count(*) AS n, sum(val) AS s FROM events
        GROUP BY window(at, '30 minutes'), who
        """,
        ADDITIVE,
    ),
    case(
        "GROUP BY a sliding time window",
        "SELECT window.start AS since, count(*) AS n FROM events GROUP BY window(at, '1 hour', '30 minutes')",
        SLIDING,
    ),
    case(
        "GROUP BY a session window",
        """
        SELECT who, session_window.start AS since, session_window.end AS until, count(*) AS n
        FROM events GROUP BY who, session_window(at, '20 minutes')
        """,
        SESSIONS,
    ),
    case("SELECT DISTINCT", "SELECT DISTINCT customer, status FROM orders", DEDUPLICATED),
    case("SELECT DISTINCT of NULLs and duplicates", "SELECT DISTINCT k, v FROM bag_a", DEDUPLICATED),
    case(
        "SELECT DISTINCT of an expression",
        "SELECT DISTINCT upper(customer) AS c, amount > 50 AS big FROM orders",
        DEDUPLICATED,
    ),
    case(
        "SELECT DISTINCT over a join",
        "SELECT DISTINCT o.customer, i.product FROM orders o JOIN items i ON i.order_id = o.id",
        DEDUPLICATED,
    ),
    case(
        "DISTINCT over an aggregate",
        "SELECT DISTINCT n, m FROM (SELECT k, count(*) AS n, max(v) AS m FROM bag_a GROUP BY k)",
        NESTED,
    ),
    case(
        "FILTER on aggregates",
        """
        SELECT customer, count(*) AS n, count(*) FILTER (WHERE status = 'paid') AS paid,
               sum(amount) FILTER (WHERE amount > 50) AS big, max(id) FILTER (WHERE status IS NULL) AS odd
        FROM orders GROUP BY customer
        """,
        ADDITIVE,
    ),
    case("COUNT DISTINCT", "SELECT product, count(DISTINCT order_id) AS n FROM items GROUP BY product", DISTINCT),
    case(
        "several DISTINCT aggregates",
        """
        SELECT product, count(DISTINCT order_id) AS o, count(DISTINCT qty) AS q, sum(DISTINCT qty) AS s, sum(qty) AS t
        FROM items GROUP BY product
        """,
        DISTINCT,
    ),
    case(
        "DISTINCT over several columns, without GROUP BY",
        "SELECT count(DISTINCT k, v) AS pairs, count(DISTINCT k) AS ks, count(*) AS n FROM bag_a",
        DISTINCT,
    ),
    case(
        "DISTINCT with FILTER",
        """
        SELECT customer, count(DISTINCT day) FILTER (WHERE status = 'paid') AS paid_days, count(DISTINCT status) AS st
        FROM orders GROUP BY customer
        """,
        DISTINCT,
    ),
    case("avg DISTINCT", "SELECT k, avg(DISTINCT v) AS m FROM bag_a GROUP BY k", DISTINCT),
    case(
        "listagg WITHIN GROUP by another column",
        """
        SELECT dept_id, listagg(name, ', ') WITHIN GROUP (ORDER BY salary DESC NULLS LAST, id) AS names FROM emp
        GROUP BY dept_id
        """,
        RESCAN,
    ),
    case(
        "listagg DISTINCT WITHIN GROUP",
        """
        SELECT customer, listagg(DISTINCT status, '/') WITHIN GROUP (ORDER BY status) AS st FROM orders
        GROUP BY customer
        """,
        RESCAN,
    ),
    case(
        "listagg without an order",
        "SELECT dept_id, listagg(name, ',') AS names FROM emp GROUP BY dept_id",
        RESCAN,
        fixed_order=True,
        limits=ORDER,
    ),
    case(
        "listagg of binary",
        "SELECT span.lo AS lo, listagg(raw, X'2C') WITHIN GROUP (ORDER BY raw) AS all_raw FROM docs GROUP BY span.lo",
        RESCAN,
    ),
    case(
        "percentile_cont and percentile_disc, both directions",
        """
        SELECT product,
               percentile_cont(0.5) WITHIN GROUP (ORDER BY price DESC) AS mid,
               percentile_disc(0.25) WITHIN GROUP (ORDER BY price) AS low,
               percentile_disc(0.25) WITHIN GROUP (ORDER BY price DESC) AS high
        FROM items GROUP BY product
        """,
        RESCAN,
    ),
    case(
        "mode WITHIN GROUP",
        "SELECT customer, mode() WITHIN GROUP (ORDER BY status) AS usual FROM orders GROUP BY customer",
        RESCAN,
    ),
    case(
        "mode with ties left open",
        "SELECT customer, mode(status) AS usual FROM orders GROUP BY customer",
        RESCAN,
        fixed_order=True,
        limits=ORDER,
    ),
    case(
        "max_by with ties",
        "SELECT dept_id, max_by(name, salary) AS richest, min_by(id, hired) AS senior FROM emp GROUP BY dept_id",
        RESCAN,
        fixed_order=True,
        limits=ORDER,
    ),
    case(
        "sorted collect_list and collect_set",
        "SELECT k, sort_array(collect_list(v)) AS vs, sort_array(collect_set(v)) AS distinct_vs FROM bag_a GROUP BY k",
        RESCAN,
    ),
    case(
        "collect_list of structs, sorted",
        "SELECT order_id, array_sort(collect_list(struct(product, qty))) AS lines FROM items GROUP BY order_id",
        RESCAN,
    ),
    case(
        "map_from_entries over collect_list, read by key",
        """
        SELECT sensor, map_from_entries(collect_list(struct('k' || q1, q1)))['k1'] AS one
        FROM (SELECT DISTINCT sensor, q1 FROM readings WHERE q1 IS NOT NULL) GROUP BY sensor
        """,
        RESCAN,
    ),
    case(
        "to_json over an aggregate",
        "SELECT customer, to_json(sort_array(collect_list(status))) AS j FROM orders GROUP BY customer",
        RESCAN,
    ),
    case(
        "min and max of text, dates and timestamps",
        "SELECT kind, min(who) AS a, max(who) AS z, min(at) AS since, max(at) AS until FROM events GROUP BY kind",
        EXTREME,
    ),
    case(
        "min and max of structs and arrays",
        "SELECT span.lo AS lo, max(struct(score, id)) AS top, min(tags) AS low FROM docs GROUP BY span.lo",
        EXTREME,
    ),
    case(
        "min and max of doubles with NaN and -0.0",
        "SELECT date(at) AS day, min(score) AS low, max(score) AS high FROM docs GROUP BY date(at)",
        EXTREME,
    ),
    case(
        "the extreme of a group goes and comes back",
        "SELECT k, min(v) AS low, max(v) AS high FROM bag_b GROUP BY k",
        EXTREME,
        rounds=(
            step("the largest goes", bag_b=([(1, 20)], [])),
            step("a larger one comes", bag_b=([], [(1, 90), (1, 90)])),
            step("one of two equal largest goes", bag_b=([(1, 90)], [])),
            step("the other goes, a smaller comes", bag_b=([(1, 90)], [(1, 5)])),
            step("only NULL is left", bag_b=([(2, 20)], [(2, None)])),
            step("the group goes", bag_b=([(2, None)], [])),
            step("smallest and largest change places", bag_b=([(1, 5), (1, 10)], [(1, 1), (1, 2), (2, 7)])),
        ),
    ),
    case(
        "sum of doubles",
        "SELECT kind, sum(val / 3.0D) AS s, avg(val / 7.0D) AS m FROM events GROUP BY kind",
        ADDITIVE,
        approximate=True,
        limits="floating point: a group is read again when the error bound is reached",
    ),
    case(
        "sum of doubles with NaN coming and going",
        "SELECT span.lo AS lo, sum(score) AS s, avg(score) AS m, count(score) AS n FROM docs GROUP BY span.lo",
        ADDITIVE,
        approximate=True,
        limits="a NaN or an infinity in a group makes it read again",
    ),
    case(
        "sum of decimals at full precision",
        """
        SELECT customer, sum(cast(amount AS DECIMAL(38, 10)) / 3) AS s, avg(amount) AS m FROM orders GROUP BY customer
        """,
        ADDITIVE,
    ),
    case(
        "sum of intervals",
        """
        SELECT who, cast(sum(at - TIMESTAMP '2024-03-01') AS STRING) AS t, max(at) - min(at) > INTERVAL '1'
               HOUR AS long
        FROM events GROUP BY who
        """,
        ADDITIVE,
    ),
    case(
        "sum and avg of the least numbers of their types",
        """
        SELECT k, sum(if(v % 2 = 0, -2147483648, v)) AS s, avg(if(v % 2 = 0, -128Y, cast(v AS TINYINT))) AS m
        FROM bag_a GROUP BY k
        """,
        ADDITIVE,
    ),
    case(
        "sum of BIGINT from the least to the greatest",
        f"SELECT k, sum({_LONGS}) AS s, count(v) AS n FROM bag_b GROUP BY k",
        ADDITIVE,
        rounds=_TO_THE_OTHER_END,
    ),
    case(
        "sum of BIGINT from the least to the greatest, beside a minimum",
        f"SELECT k, sum({_LONGS}) AS s, min(v) AS m FROM bag_b GROUP BY k HAVING sum({_LONGS}) <> 5",
        EXTREME,
        rounds=_TO_THE_OTHER_END,
    ),
    case(
        "try_sum over an overflow",
        "SELECT k, try_sum(9223372036854775000 + v) AS s FROM bag_a GROUP BY k",
        RESCAN,
    ),
    case(
        "expression over aggregates",
        """
        SELECT customer, 100 * sum(CASE WHEN status = 'paid' THEN amount ELSE 0 END) / nullif(sum(amount), 0) AS pct,
               max(amount) - min(amount) AS spread, concat(count(*), ' orders') AS label
        FROM orders GROUP BY customer
        """,
        EXPRESSION,
    ),
    case(
        "expression over aggregates and keys",
        "SELECT k, k * 100 + sum(v) AS x, coalesce(max(v), -k) AS y FROM bag_a GROUP BY k",
        EXPRESSION,
    ),
    case(
        "HAVING crossed both ways",
        "SELECT customer, count(*) AS n, sum(amount) AS s FROM orders GROUP BY customer HAVING sum(amount) > 100",
        HAVING,
    ),
    case(
        "HAVING on an aggregate that is not shown",
        "SELECT product FROM items GROUP BY product HAVING count(DISTINCT order_id) > 1 AND max(qty) >= 4",
        HAVING,
    ),
    case("HAVING without GROUP BY", "SELECT sum(v) AS s FROM bag_a HAVING count(*) > 9", HAVING),
    case(
        "GROUPING SETS",
        """
        SELECT region, quarter, sum(amount) AS s, count(*) AS n FROM sales
        GROUP BY GROUPING SETS ((region, quarter), (region), (product))
        """,
        EXPANDED,
    ),
    case(
        "GROUPING SETS with the empty set",
        "SELECT region, sum(amount) AS s FROM sales GROUP BY GROUPING SETS ((region), ())",
        EXPANDED,
        limits="over no rows Spark gives no grand total",
    ),
    case(
        "ROLLUP with a real NULL beside a subtotal NULL",
        """
        SELECT region, quarter, grouping(quarter) AS g, sum(amount) AS s, count(*) AS n FROM sales
        GROUP BY ROLLUP(region, quarter)
        """,
        EXPANDED,
    ),
    case(
        "ROLLUP without telling the NULLs apart",
        "SELECT region, quarter, sum(amount) AS s FROM sales GROUP BY ROLLUP(region, quarter)",
        EXPANDED,
    ),
    case(
        "CUBE",
        """
        SELECT region, quarter, product, grouping_id() AS g, count(*) AS n FROM sales
        GROUP BY CUBE(region, quarter, product)
        """,
        EXPANDED,
    ),
    case(
        "CUBE beside plain keys",
        "SELECT product, region, quarter, max(amount) AS m FROM sales GROUP BY product, CUBE(region, quarter)",
        EXPANDED,
    ),
    case(
        "GROUPING SETS with DISTINCT and HAVING",
        """
        SELECT region, product, count(DISTINCT quarter) AS q, sum(amount) AS s
        FROM sales GROUP BY GROUPING SETS ((region), (product), (region, product)) HAVING count(*) > 1
        """,
        EXPANDED,
    ),
    case(
        "PIVOT",
        """
        SELECT * FROM (SELECT region, quarter, amount FROM sales)
        PIVOT (sum(amount) FOR quarter IN ('q1', 'q2', 'q3'))
        """,
        PIVOTED,
    ),
    case(
        "PIVOT with several aggregates and columns",
        """
        SELECT * FROM sales
        PIVOT (
          sum(amount) AS total, count(amount) AS n FOR (quarter, product) IN (('q1', 'nut') AS a, ('q2', 'bolt') AS b)
        )
        """,
        PIVOTED,
    ),
    case(
        "UNPIVOT",
        "SELECT sensor, quarter, val FROM readings UNPIVOT (val FOR quarter IN (q1, q2, q3))",
        Way("each changed row is expanded alone", "changed rows only"),
    ),
    case(
        "UNPIVOT with NULLs, aggregated",
        """
        SELECT quarter, count(*) AS n, sum(val) AS s
        FROM readings UNPIVOT INCLUDE NULLS (val FOR quarter IN (q1 AS first, q2 AS second)) GROUP BY quarter
        """,
        ADDITIVE,
    ),
    case(
        "UNPIVOT whose rows are counted alone",
        "SELECT count(*) AS n FROM readings UNPIVOT INCLUDE NULLS (val FOR quarter IN (q1, q2, q3))",
        ADDITIVE,
    ),
    case(
        "UNPIVOT of several columns at once",
        "SELECT sensor, half, a, b FROM readings UNPIVOT ((a, b) FOR half IN ((q1, q2) AS early, (q2, q3) AS late))",
        Way("each changed row is expanded alone", "changed rows only"),
    ),
    case(
        "aggregate over aggregate",
        """
        SELECT n, count(*) AS customers FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) GROUP BY n
        """,
        NESTED,
    ),
    case(
        "aggregate over aggregate over aggregate",
        """
        SELECT max(total) AS best, avg(total) AS middle, count(*) AS groups
        FROM (
          SELECT n, sum(s) AS total
          FROM (SELECT customer, status, count(*) AS n, sum(amount) AS s FROM orders GROUP BY customer, status)
          GROUP BY n
        )
        """,
        NESTED,
    ),
    case(
        "aggregate of distinct values of an aggregate",
        "SELECT m, count(DISTINCT n) AS k FROM (SELECT k, max(v) AS m, count(*) AS n FROM bag_a GROUP BY k) GROUP BY m",
        NESTED,
    ),
    case(
        "aggregate over an aggregate joined to its detail",
        """
        SELECT o.status, count(*) AS n, sum(g.s) AS s
        FROM orders o JOIN (SELECT order_id, sum(qty) AS s FROM items GROUP BY order_id) g ON g.order_id = o.id
        GROUP BY o.status
        """,
        NESTED,
    ),
    case(
        "an unused column changes, and groups where all cancels",
        "SELECT customer, count(*) AS n FROM orders GROUP BY customer",
        ADDITIVE,
        rounds=(
            step("an unused column changes", orders=([_ADA], [(*_ADA[:3], "void", None)])),
            step("one comes and one goes in a group", orders=([_BO], [(30, *_BO[1:])])),
            Round(
                "come, changed and gone between two refreshes",
                (
                    {"orders": Change(inserts=((40, *_BO[1:]),))},
                    {"orders": Change(deletes=((40, *_BO[1:]),), inserts=((40, "Zoe", *_BO[2:]),))},
                    {"orders": Change(deletes=((40, "Zoe", *_BO[2:]),))},
                ),
            ),
            step("a group comes", orders=([], [(41, "Zoe", *_BO[2:])])),
            step("a group goes, another grows", orders=([(41, "Zoe", *_BO[2:])], [(42, "Ada", *_BO[2:])])),
        ),
        constant=True,
    ),
)
