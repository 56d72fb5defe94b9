"""What cannot be maintained by its changes, each with the reason.

In mode ``differential`` these are refused with the code; in mode ``auto`` they are refreshed in full with that reason,
and those that depend on time are refreshed even when no source has changed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .case import Case, Way, case
from .group_functions import register_table_functions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NON_DETERMINISTIC: Final = "NON_DETERMINISTIC"
TIME_DEPENDENT: Final = "TIME_DEPENDENT"
SESSION_DEPENDENT: Final = "SESSION_DEPENDENT"
SAMPLED: Final = "TABLESAMPLE"
UNORDERED_LIMIT: Final = "LIMIT_WITHOUT_ORDER"
STREAMING_SOURCE: Final = "STREAMING_SOURCE"
UNSUPPORTED_SOURCE: Final = "UNSUPPORTED_SOURCE"
UNSUPPORTED_TYPE: Final = "UNSUPPORTED_TYPE"
PARTITION_FUNCTION: Final = "PARTITION_FUNCTION"
SCRIPT: Final = "SCRIPT_TRANSFORM"

_RANDOM = Way("returns different values at each run", "remove it, or keep its value in a table")
_PHYSICAL = Way("depends on how the rows happen to be stored and split", "use a column of the row instead")
_TIME = Way("changes without any source changing", "compare with a column, or filter by time when reading the table")
_SESSION = Way("depends on who refreshes and in which session", "pass it as a parameter")
_SAMPLE = Way("takes other rows at each run", "filter by a hash of a column")
_LIMIT = Way("any rows may be taken", "add ORDER BY")
_STREAM = Way("a streaming source has no versions to compare", "write it to a table, and read that")
_FILES = Way("a source without versions cannot tell what changed", "use a versioned table")
_COMPARE = Way("rows with such a value cannot be compared, so none can be taken back", "use map_entries, or to_json")
_HOLD = Way("a Delta table has no such type", "show it as plain text: COLLATE UTF8_BINARY, CAST(… AS STRING)")
_TASKS = Way("the function sees the rows of a task, whose borders mean nothing", "say PARTITION BY")
_BATCHES = Way(
    "the function sees whole batches, whose borders mean nothing", "use applyInPandas by group, or a scalar UDF"
)


def register_nondeterministic(spark: SparkSession) -> None:
    """Register ``dice``, a UDF that says of itself that it is not deterministic."""
    from pyspark.sql.functions import udf

    spark.udf.register("dice", udf(lambda: 4, "int").asNondeterministic())


def _streamed(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load().groupBy("value").count()


def _files(spark: SparkSession) -> DataFrame:
    path = str(Path(tempfile.mkdtemp(prefix="trickle-corpus-")) / "plain")
    spark.table("bag_a").write.parquet(path)
    return spark.read.parquet(path).groupBy("k").count()


def _mapped(spark: SparkSession) -> DataFrame:
    def first_of_batch(batches):
        for batch in batches:
            yield batch.head(1)

    return spark.table("bag_a").mapInPandas(first_of_batch, "k INT, v INT")


def _sampled(spark: SparkSession) -> DataFrame:
    return spark.table("orders").sample(0.5, seed=1).select("id")


def _limited(spark: SparkSession) -> DataFrame:
    return spark.table("orders").limit(3).select("id")


def _refused(title: str, query: str, way: Way, code: str, **more: object) -> Case:
    return case(title, query, way, refused=code, **more)


CASES: tuple[Case, ...] = (
    _refused("rand", "SELECT id, rand() AS r FROM orders", _RANDOM, NON_DETERMINISTIC),
    _refused("rand with a seed", "SELECT id, rand(1) AS r FROM orders", _PHYSICAL, NON_DETERMINISTIC),
    _refused("randn in WHERE", "SELECT id FROM orders WHERE randn() > 0", _RANDOM, NON_DETERMINISTIC),
    _refused(
        "uniform and randstr", "SELECT id, uniform(1, 6) AS d, randstr(3) AS s FROM orders", _RANDOM, NON_DETERMINISTIC
    ),
    _refused("uuid", "SELECT uuid() AS u, id FROM orders", _RANDOM, NON_DETERMINISTIC),
    _refused("shuffle", "SELECT id, shuffle(tags) AS t FROM docs", _RANDOM, NON_DETERMINISTIC),
    _refused(
        "rand under an aggregate",
        "SELECT customer, sum(x) AS s FROM (SELECT customer, amount * rand() AS x FROM orders) GROUP BY customer",
        _RANDOM,
        NON_DETERMINISTIC,
    ),
    _refused("ORDER BY rand LIMIT", "SELECT id FROM orders ORDER BY rand() LIMIT 2", _RANDOM, NON_DETERMINISTIC),
    _refused(
        "rand deep inside: in a CTE, in a view",
        "WITH t AS (SELECT * FROM odd_orders) SELECT count(*) AS n FROM t WHERE r > 0.5",
        _RANDOM,
        NON_DETERMINISTIC,
        setup=("CREATE OR REPLACE TEMPORARY VIEW odd_orders AS SELECT id, rand() AS r FROM orders",),
    ),
    _refused(
        "rand in a subquery",
        "SELECT k FROM bag_a WHERE k IN (SELECT k FROM bag_b WHERE rand() < 0.5)",
        _RANDOM,
        NON_DETERMINISTIC,
    ),
    _refused(
        "UDF that is not deterministic",
        "SELECT id, dice() AS d FROM orders",
        _RANDOM,
        NON_DETERMINISTIC,
        register=register_nondeterministic,
    ),
    _refused(
        "monotonically_increasing_id",
        "SELECT id, monotonically_increasing_id() AS m FROM orders",
        _PHYSICAL,
        NON_DETERMINISTIC,
    ),
    _refused(
        "spark_partition_id",
        "SELECT spark_partition_id() AS p, count(*) AS n FROM orders GROUP BY 1",
        _PHYSICAL,
        NON_DETERMINISTIC,
    ),
    _refused("input_file_name", "SELECT id, input_file_name() AS f FROM orders", _PHYSICAL, NON_DETERMINISTIC),
    _refused("current_timestamp", "SELECT id, current_timestamp() AS t FROM orders", _TIME, TIME_DEPENDENT),
    _refused("now in WHERE", "SELECT id FROM events WHERE at > now() - INTERVAL 1 DAY", _TIME, TIME_DEPENDENT),
    _refused(
        "current_date in an aggregate",
        "SELECT customer, count_if(day = current_date()) AS today FROM orders GROUP BY customer",
        _TIME,
        TIME_DEPENDENT,
    ),
    _refused(
        "localtimestamp and unix_timestamp",
        "SELECT id, localtimestamp() AS a, unix_timestamp() AS b FROM orders",
        _TIME,
        TIME_DEPENDENT,
    ),
    _refused(
        "current_date in a scalar subquery",
        "SELECT id FROM events WHERE at < (SELECT max(current_date()) FROM bag_a)",
        _TIME,
        TIME_DEPENDENT,
    ),
    _refused(
        "current_date deep inside a SQL function",
        "SELECT id, age(day) AS days FROM orders",
        _TIME,
        TIME_DEPENDENT,
        setup=("CREATE OR REPLACE TEMPORARY FUNCTION age(d DATE) RETURNS INT RETURN datediff(current_date(), d)",),
    ),
    _refused("current_user", "SELECT id FROM emp WHERE name = current_user()", _SESSION, SESSION_DEPENDENT),
    _refused("TABLESAMPLE by percent", "SELECT id FROM orders TABLESAMPLE (50 PERCENT)", _SAMPLE, SAMPLED),
    _refused(
        "TABLESAMPLE with a seed", "SELECT id FROM orders TABLESAMPLE (50 PERCENT) REPEATABLE (7)", _SAMPLE, SAMPLED
    ),
    _refused("TABLESAMPLE by rows", "SELECT id FROM orders TABLESAMPLE (3 ROWS)", _LIMIT, UNORDERED_LIMIT),
    _refused("LIMIT without ORDER BY", "SELECT id FROM orders LIMIT 3", _LIMIT, UNORDERED_LIMIT),
    _refused("OFFSET without ORDER BY", "SELECT id FROM orders OFFSET 2", _LIMIT, UNORDERED_LIMIT),
    _refused(
        "LIMIT without ORDER BY in a subquery",
        "SELECT k FROM bag_a WHERE v IN (SELECT v FROM bag_b LIMIT 2)",
        _LIMIT,
        UNORDERED_LIMIT,
    ),
    _refused(
        "LIMIT without ORDER BY in LATERAL",
        "SELECT o.id, t.product FROM orders o, LATERAL (SELECT product FROM items i WHERE i.order_id = o.id LIMIT 1) t",
        _LIMIT,
        UNORDERED_LIMIT,
    ),
    _refused("map in the result", "SELECT id, options FROM prefs", _COMPARE, UNSUPPORTED_TYPE),
    _refused(
        "map inside a struct in the result",
        "SELECT id, struct(map('a', amount) AS m) AS s FROM orders",
        _COMPARE,
        UNSUPPORTED_TYPE,
    ),
    _refused("variant in the result", "SELECT id, parse_json(body) AS v FROM docs", _COMPARE, UNSUPPORTED_TYPE),
    _refused(
        "calendar interval in the result",
        "SELECT id, make_interval(0, val) AS i FROM events",
        _COMPARE,
        UNSUPPORTED_TYPE,
    ),
    _refused(
        "script transformation",
        "SELECT TRANSFORM(k, v) USING 'cat' AS (a STRING, b STRING) FROM bag_a",
        _BATCHES,
        SCRIPT,
    ),
    _refused(
        "Python UDTF with a TABLE argument and no partitions",
        "SELECT k, lowest, highest FROM spread(TABLE(SELECT k, v FROM bag_a))",
        _TASKS,
        "TABLE_ARGUMENT",
        register=register_table_functions,
    ),
    _refused(
        "Python UDTF with a TABLE argument and a hint for several tasks",
        "SELECT k, lowest, highest FROM spread(TABLE(SELECT /*+ REPARTITION(3) */ k, v FROM bag_a))",
        _TASKS,
        "TABLE_ARGUMENT",
        register=register_table_functions,
    ),
    _refused("DataFrame: mapInPandas", "", _BATCHES, PARTITION_FUNCTION, tables=("bag_a",), define=_mapped),
    _refused("DataFrame: sample", "", _SAMPLE, SAMPLED, tables=("orders",), define=_sampled),
    _refused("DataFrame: limit without sort", "", _LIMIT, UNORDERED_LIMIT, tables=("orders",), define=_limited),
    _refused("streaming source", "", _STREAM, STREAMING_SOURCE, tables=("bag_a",), define=_streamed),
    _refused("files without versions", "", _FILES, UNSUPPORTED_SOURCE, tables=("bag_a",), define=_files),
    _refused(
        "text with a collation in the result",
        "SELECT id, array(customer COLLATE UTF8_LCASE) AS c FROM orders",
        _HOLD,
        UNSUPPORTED_TYPE,
    ),
    _refused("time of day in the result", "SELECT id, TIME'12:30:00' AS t FROM orders", _HOLD, UNSUPPORTED_TYPE),
)
