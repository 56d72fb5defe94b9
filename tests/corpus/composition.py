"""CTEs, views, functions of every kind, complex types, collations, parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .case import Case, Way, case
from .rounds import Change, Round, step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONCE = Way("it is part of the query at each reference", "as its query, at each reference")
INLINED = Way("it is part of the query", "as its query")
ROWWISE = Way("each changed row is processed alone", "changed rows only")
BY_GROUP = Way("the touched groups are recomputed", "rows of the touched groups")
JOINED = Way("as the joins it stands for", "matches of the changed rows")
MIXED = Way("each operator passes its change to the one above", "as its operators")
DETERMINISTIC = "the function must be deterministic: it may be run again for old rows"


def register_scalar_udfs(spark: SparkSession) -> None:
    """Register ``py_initial`` (Python), ``pd_double`` (pandas), ``arrow_plus`` (Arrow)."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql.functions import arrow_udf, pandas_udf, udf

    def py_initial(text):
        return text[:1].upper() if text else None

    def pd_double(number):
        return number * 2

    pd_double.__annotations__ = {"number": pd.Series, "return": pd.Series}

    def arrow_plus(left, right):
        return pc.add(left, right)

    arrow_plus.__annotations__ = {"left": pa.Array, "right": pa.Array, "return": pa.Array}
    spark.udf.register("py_initial", udf(py_initial, "string"))
    spark.udf.register("pd_double", pandas_udf(pd_double, "double"))
    spark.udf.register("arrow_plus", arrow_udf(arrow_plus, "int"))


_VIEW = "CREATE OR REPLACE TEMPORARY VIEW paid_orders AS SELECT id, customer, amount FROM orders WHERE status = 'paid'"
_VIEW_2 = (
    "CREATE OR REPLACE TEMPORARY VIEW paid_totals AS "
    "SELECT customer, sum(amount) AS s FROM paid_orders GROUP BY customer"
)

CASES: tuple[Case, ...] = (
    case(
        "projection and filter",
        "SELECT id, upper(customer) AS c, amount * 2 AS twice FROM orders WHERE amount >= 60",
        ROWWISE,
    ),
    case(
        "filter that an update crosses", "SELECT id, name FROM emp WHERE salary > 450 AND dept_id IS NOT NULL", ROWWISE
    ),
    case("SELECT *", "SELECT * FROM docs", ROWWISE),
    case("SELECT * EXCEPT", "SELECT * EXCEPT (hired, boss_id) FROM emp WHERE id > 2", ROWWISE),
    case(
        "CTE referenced once",
        """
        WITH big AS (SELECT * FROM orders WHERE amount > 50) SELECT customer, count(*) AS n FROM big GROUP BY customer
        """,
        INLINED,
    ),
    case(
        "CTE referenced many times",
        """
        WITH totals AS (SELECT customer, sum(amount) AS s, count(*) AS n FROM orders GROUP BY customer)
        SELECT a.customer, a.s, b.customer AS next, (SELECT max(s) FROM totals) AS top
        FROM totals a LEFT JOIN totals b ON b.s > a.s AND b.n <= a.n
        WHERE a.customer IN (SELECT customer FROM totals WHERE n > 1)
        """,
        ONCE,
    ),
    case(
        "CTEs that build on each other, with columns renamed",
        """
        WITH lines(o, line) AS (SELECT order_id, qty * price FROM items),
             sums(o, s) AS (SELECT o, sum(line) FROM lines GROUP BY o),
             ranked AS (SELECT *, rank() OVER (ORDER BY s DESC) AS r FROM sums)
        SELECT orders.customer, ranked.s, ranked.r FROM ranked JOIN orders ON orders.id = ranked.o
        """,
        MIXED,
    ),
    case(
        "CTE inside a subquery, hiding an outer one",
        """
        WITH t AS (SELECT k FROM bag_a)
        SELECT k, (WITH t AS (SELECT v FROM bag_b) SELECT max(v) FROM t) AS m FROM t
        """,
        MIXED,
    ),
    case("view", "SELECT customer, count(*) AS n FROM paid_orders GROUP BY customer", INLINED, setup=(_VIEW,)),
    case(
        "nested views",
        "SELECT t.customer, t.s, o.id FROM paid_totals t JOIN paid_orders o ON o.customer = t.customer",
        INLINED,
        setup=(_VIEW, _VIEW_2),
    ),
    case(
        "a changed view definition is noticed",
        "SELECT customer, s FROM paid_totals",
        INLINED,
        setup=(_VIEW, _VIEW_2),
        rounds=(
            step("rows change", orders=([], [(50, "Di", None, "paid", None)])),
            Round(
                "the inner view is replaced",
                statements=(_VIEW.replace("'paid'", "'open'"),),
                mode="full",
            ),
            step("rows change again", orders=([(50, "Di", None, "paid", None)], [(51, "Di", None, "open", None)])),
            Round(
                "the inner view is replaced while rows change",
                ({"orders": Change(inserts=((52, "Ed", None, "paid", None),))},),
                statements=(_VIEW,),
                mode="full",
            ),
            step("and once more", orders=([(52, "Ed", None, "paid", None)], [])),
        ),
    ),
    case(
        "temporary SQL function",
        "SELECT id, with_tax(amount) AS gross FROM orders",
        ROWWISE,
        setup=("CREATE OR REPLACE TEMPORARY FUNCTION with_tax(x DECIMAL(10,2)) RETURNS DECIMAL(12,2) RETURN x * 1.25",),
    ),
    case(
        "SQL function that reads a table",
        "SELECT id, name, mates(dept_id) AS n FROM emp",
        JOINED,
        setup=(
            "CREATE OR REPLACE TEMPORARY FUNCTION mates(d INT) RETURNS BIGINT "
            "RETURN SELECT count(*) FROM emp e WHERE e.dept_id = d",
        ),
    ),
    case(
        "SQL table function",
        "SELECT o.id, t.product, t.line FROM orders o, LATERAL lines_of(o.id) t",
        JOINED,
        setup=(
            "CREATE OR REPLACE TEMPORARY FUNCTION lines_of(o INT) RETURNS TABLE(product STRING, line DECIMAL(20,2)) "
            "RETURN SELECT product, qty * price FROM items WHERE order_id = o",
        ),
    ),
    case(
        "session variable",
        "SELECT id, amount FROM orders WHERE amount > least_amount",
        ROWWISE,
        setup=("DECLARE OR REPLACE VARIABLE least_amount DECIMAL(10,2) DEFAULT 50",),
        limits="the value at creation is kept",
    ),
    case(
        "Python scalar UDF",
        "SELECT py_initial(customer) AS c, count(*) AS n FROM orders GROUP BY py_initial(customer)",
        ROWWISE,
        register=register_scalar_udfs,
        limits=DETERMINISTIC,
    ),
    case(
        "Python UDF in WHERE and in a join",
        """
        SELECT a.id, b.id AS other FROM orders a JOIN emp b ON py_initial(a.customer) = py_initial(b.name)
        WHERE py_initial(a.status) = 'P'
        """,
        JOINED,
        register=register_scalar_udfs,
        limits=DETERMINISTIC,
    ),
    case(
        "pandas UDF",
        "SELECT id, pd_double(val) AS twice FROM events WHERE pd_double(val) > 2",
        ROWWISE,
        register=register_scalar_udfs,
        limits=DETERMINISTIC,
    ),
    case(
        "Arrow UDF over an aggregate",
        "SELECT k, arrow_plus(max(v), min(v)) AS both FROM bag_a GROUP BY k",
        MIXED,
        register=register_scalar_udfs,
        limits=DETERMINISTIC,
    ),
    case(
        "lambda functions over arrays",
        """
        SELECT id, transform(tags, t -> upper(t)) AS up, filter(tags, t -> t IS NOT NULL) AS set_tags,
               exists(tags, t -> t = 'red') AS red, aggregate(parts, 0, (s, p) -> s + p.qty) AS qty,
               zip_with(tags, tags, (a, b) -> a || b) AS pairs,
               array_sort(tags, (a, b) -> CASE WHEN a < b THEN 1 ELSE -1 END) AS back
        FROM docs WHERE forall(tags, t -> t IS NOT NULL)
        """,
        ROWWISE,
    ),
    case(
        "lambda functions over maps",
        """
        SELECT id, map_keys(map_filter(options, (k, v) -> v > 1)) AS big,
               map_values(transform_values(options, (k, v) -> v * 10)) AS tens,
               options['x'] AS x, cardinality(options) AS n
        FROM prefs
        """,
        ROWWISE,
        limits="a map may not be in the result or in a key; what is taken from it may",
    ),
    case(
        "maps by their entries, aggregated",
        """
        SELECT e.key, count(*) AS n, sum(e.value) AS s FROM prefs LATERAL VIEW explode(map_entries(options)) t AS e
        GROUP BY e.key
        """,
        MIXED,
    ),
    case(
        "map built and read in the query",
        "SELECT id, map('a', amount, 'b', amount * 2)['b'] AS twice FROM orders",
        ROWWISE,
    ),
    case(
        "nested structs and arrays in the result",
        """
        SELECT id, struct(span.lo AS lo, struct(tags, parts) AS inner) AS s, array(array(id), array(span.hi)) AS a
        FROM docs
        """,
        ROWWISE,
    ),
    case(
        "fields of a struct, not the first ones",
        "SELECT id, span.hi AS hi, parts.qty AS counts FROM docs WHERE span.hi > 2",
        ROWWISE,
    ),
    case("arrays and structs carried by a filter", "SELECT id, tags, parts, span FROM docs WHERE id % 3 <> 0", ROWWISE),
    case(
        "arrays and structs carried by a join and a left join",
        """
        SELECT d.id, d.tags, d.span, o.customer, x.parts
        FROM docs AS d JOIN orders AS o ON o.id = d.id LEFT JOIN docs AS x ON x.id = d.id + 1 AND size(x.parts) > 0
        """,
        MIXED,
    ),
    case(
        "arrays carried by UNION ALL and DISTINCT",
        "SELECT DISTINCT tags, span FROM docs UNION ALL SELECT array(customer), NULL FROM orders",
        MIXED,
    ),
    case("first rows in the order of an array", "SELECT id, tags, parts FROM docs ORDER BY tags, id LIMIT 4", MIXED),
    case(
        "window in the order of an array",
        """
        SELECT id, tags, span FROM (
          SELECT id, tags, span, row_number() OVER (PARTITION BY span.lo ORDER BY tags DESC NULLS LAST, id) AS place FROM docs
        ) WHERE place <= 2
        """,
        MIXED,
    ),
    case("binary, timestamps and doubles in the result", "SELECT raw, at, score, hex(raw) AS h FROM docs", ROWWISE),
    case(
        "timestamps without zone, and intervals on the way",
        """
        SELECT id, cast(at AS TIMESTAMP_NTZ) AS ntz, cast(at - TIMESTAMP '2024-03-01 00:00:00' AS STRING) AS since,
               at + val * INTERVAL '1' MONTH AS later, hour(at) AS clock
        FROM events
        """,
        ROWWISE,
    ),
    case(
        "JSON paths and from_json",
        """
        SELECT id, get_json_object(body, '$.user') AS who, from_json(body, 'n INT, lines ARRAY<STRUCT<qty:
               INT>>') AS j
        FROM docs
        """,
        ROWWISE,
    ),
    case(
        "variant paths, cast",
        """
        SELECT id, parse_json(body):user::STRING AS who, try_variant_get(parse_json(body), '$.lines[0].qty',
               'int') AS q
        FROM docs
        """,
        ROWWISE,
        limits="a variant may not be in the result or in a key; what is taken from it may",
    ),
    case(
        "collation in GROUP BY",
        """
        SELECT lower(max(customer)) AS c, count(*) AS n, sum(amount) AS s FROM orders
        GROUP BY customer COLLATE UTF8_LCASE
        """,
        BY_GROUP,
    ),
    case(
        "collation in a key that is shown",
        """
        SELECT c COLLATE UTF8_BINARY AS c, n
        FROM (SELECT customer COLLATE UTF8_LCASE AS c, count(*) AS n FROM orders GROUP BY customer COLLATE UTF8_LCASE)
        """,
        BY_GROUP,
        fixed_order=True,
        limits="which of the equal texts is shown: the engine takes the least by bytes; Delta holds it without the collation",
    ),
    case(
        "collation in a join",
        """
        SELECT a.id, b.id AS other FROM orders a
        JOIN orders b ON a.customer COLLATE UTF8_LCASE = b.customer AND a.id < b.id
        """,
        JOINED,
    ),
    case(
        "collation in ORDER BY LIMIT and DISTINCT",
        "SELECT DISTINCT customer AS c, status FROM orders ORDER BY c COLLATE UNICODE_CI DESC, c, status LIMIT 4",
        MIXED,
    ),
    case(
        "named parameters",
        "SELECT id, amount FROM orders WHERE amount > :least AND status = :status",
        ROWWISE,
        args={"least": 20, "status": "paid"},
    ),
    case(
        "IDENTIFIER clause",
        "SELECT IDENTIFIER('customer') AS c, max(IDENTIFIER('amount')) AS m FROM IDENTIFIER('orders') GROUP BY 1",
        BY_GROUP,
        tables=("orders",),
    ),
    case(
        "lateral column alias",
        "SELECT id, amount * 2 AS twice, twice + 1 AS more FROM orders WHERE amount IS NOT NULL",
        ROWWISE,
    ),
    case(
        "pipe syntax",
        """
        FROM orders |> WHERE amount > 20 |> AGGREGATE count(*) AS n, sum(amount) AS s GROUP BY customer |> WHERE n > 1
        |> EXTEND s / n AS mean
        """,
        MIXED,
    ),
    case(
        "LIKE ANY, RLIKE, IN list, BETWEEN",
        """
        SELECT id FROM orders
        WHERE customer LIKE ANY ('A%', 'b%') OR customer RLIKE '^C' AND status IN ('paid', NULL) OR amount
               BETWEEN 10 AND 20
        """,
        ROWWISE,
    ),
    case(
        "CASE, COALESCE, NULLIF, IF and TRY functions",
        """
        SELECT id, CASE status WHEN 'paid' THEN 1 WHEN 'open' THEN 0 END AS s, coalesce(amount, 0) AS a,
               nullif(customer, 'Bo') AS c, if(day IS NULL, 'no day', 'day') AS d, try_divide(amount, amount - 80) AS t
        FROM orders
        """,
        ROWWISE,
    ),
    case(
        "constant query without a table change",
        "SELECT 1 AS one, max(k) IS NOT NULL AS some_key FROM bag_a WHERE false",
        ROWWISE,
        constant=True,
    ),
    case("a filter that never passes", "SELECT id FROM orders WHERE 1 = 0", ROWWISE, constant=True),
    case(
        "outer join over aggregate over window over join",
        """
        SELECT d.name, t.best, t.n
        FROM dept d LEFT JOIN (
          SELECT dept_id, max(amount) AS best, count(*) AS n
          FROM (
            SELECT e.dept_id, o.amount, rank() OVER (PARTITION BY e.dept_id ORDER BY o.amount DESC) AS r
            FROM emp e JOIN orders o ON o.id = e.id
          ) WHERE r <= 2 GROUP BY dept_id
        ) t ON t.dept_id = d.id
        """,
        MIXED,
    ),
    case(
        "NOT EXISTS over UNION over aggregate",
        """
        SELECT a.k, a.v FROM bag_a a
        WHERE NOT EXISTS (
          SELECT 1 FROM (SELECT k, max(v) AS v FROM bag_b GROUP BY k UNION SELECT k, v FROM bag_c) u
          WHERE u.k = a.k AND u.v = a.v
        )
        """,
        MIXED,
    ),
    case(
        "aggregate over top-k over aggregate",
        """
        SELECT count(*) AS n, sum(s) AS total
        FROM (
          SELECT customer, sum(amount) AS s FROM orders GROUP BY customer ORDER BY s DESC NULLS LAST, customer LIMIT 3
        )
        """,
        MIXED,
    ),
)
