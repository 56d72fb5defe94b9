"""Catalyst's interpreter in the driver against a Spark job: the same bits for every expression, over values as they come."""

from __future__ import annotations

import threading

import polars as pl
import pyarrow as pa
import pytest

from trickle.catalyst.jvm import Jvm, items
from trickle.catalyst.opaque import opaque
from trickle.compute.inputs import Inputs
from trickle.compute.leaves import Leaves
from trickle.model.options import Options

ROWS = """
    SELECT * FROM VALUES
        (1Y, 2S, 3, 4L, 1.5F, 2.5D, 'plain text', DATE'2024-02-29', TIMESTAMP'2024-03-10 07:30:00.123456Z', 10.25BD,
         true, X'00FF'),
        (127Y, 32767S, 2147483647, 9223372036854775807L, float('inf'), double('-0.0'), 'Straße ǅ İı ﬁ', DATE'1582-10-10',
         TIMESTAMP'1582-10-10 12:00:00Z', 99999999.99BD, false, X''),
        (-128Y, -32768S, -2147483648, -9223372036854775808L, float('nan'), double('nan'), '', DATE'0001-01-01',
         TIMESTAMP'0001-01-01 00:00:00Z', -99999999.99BD, NULL, X'C328'),
        (0Y, 0S, 0, 0L, float('-0.0'), 0.0D, ' 12.50 ', DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59.999999Z',
         0.00BD, true, NULL),
        (-1Y, -1S, -1, -1L, -1.0E-30F, -1.7976931348623157E308D, 'a\\u2028b\\n', DATE'1969-12-31',
         TIMESTAMP'1969-12-31 23:59:59.999999Z',
         -0.01BD, false, X'616263'),
        (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        (7Y, 8S, 9, 10L, float('3.4028235E38'), 4.9E-324D, '{"a": 1, "b": [1, 2]}', DATE'2024-11-03',
         TIMESTAMP'2024-11-03 05:30:00Z', 0.50BD,
         true, X'F09F9880'),
        (5Y, 5S, 5, 1721952000L, 0.1F, 0.1D, '2024-07-26 01:02:03', DATE'1900-01-01', TIMESTAMP'1900-01-01 00:00:00Z',
         0.05BD, false,
         X'00')
    AS t (b, s, i, n, f, d, x, dt, t, c, o, y)
"""
TYPED = (
    "SELECT b, s, i, n, f, d, x, dt, t, CAST(t AS TIMESTAMP_NTZ) AS u, CAST(c AS DECIMAL(10, 2)) AS c, o, y FROM bits"
)

EXPRESSIONS = """
b + 1Y; s * s; i + 1; n + n; n - 1; -n; abs(i); i * 2; n * n; b % 3Y; n % -1; i % 0; n div 0; n div -1; pmod(n, 7)
pmod(i, -3); n / 3; d / 0; f / 3; c / 3; c / 0; c * c; c + 0.005; c % 3; -c; i / 2; try_add(n, 1); try_divide(n, 0)
try_multiply(n, n); CAST(n AS INT); CAST(i AS TINYINT); CAST(d AS INT); CAST(d AS BIGINT); CAST(f AS SMALLINT)
CAST(x AS INT); CAST(x AS DOUBLE); CAST(x AS DATE); CAST(x AS TIMESTAMP); CAST(x AS DECIMAL(10, 1)); CAST(c AS INT)
CAST(c AS DECIMAL(4, 1)); CAST(c AS STRING); CAST(d AS STRING); CAST(f AS STRING); CAST(f AS DOUBLE); CAST(d AS FLOAT)
CAST(n AS DOUBLE); CAST(n AS DECIMAL(10, 0)); CAST(o AS INT); CAST(x AS BOOLEAN); CAST(y AS STRING); CAST(x AS BINARY)
CAST(n AS TIMESTAMP); CAST(t AS BIGINT); CAST(t AS DOUBLE); CAST(t AS DATE); CAST(t AS STRING); CAST(u AS STRING)
CAST(u AS TIMESTAMP); CAST(dt AS TIMESTAMP); CAST(dt AS STRING); CAST(d AS DECIMAL(20, 5)); CAST(x AS CHAR(3))
CAST(x AS VARCHAR(3)); CAST(d AS TIMESTAMP); CAST(i AS BINARY); CAST(y AS INT); d = double('nan'); d > 1; f <=> f; d = 0
d < f; greatest(f, 0F); least(d, 1D); nanvl(d, 1D); isnan(f); coalesce(f, 9F); nullif(d, 0D); d IN (0.1D, double('nan'))
CASE WHEN d > 0 THEN f ELSE -f END; if(d = 0, d, f); d BETWEEN -1 AND 1; NOT (f > d); f + d; d * d; f * f; d % 1
sqrt(d); cbrt(d); exp(f); ln(d); log10(n); log2(d); log(3, d); log1p(f); expm1(f); sin(d); cos(f); tan(d); asin(f)
atan2(f, d); sinh(f); tanh(d); acosh(d); pow(f, 0.5); pow(d, i); hypot(f, d); rint(d); signum(d); degrees(d); radians(d)
round(d, 2); round(c, 1); bround(c, 1); round(i, -1); round(n, -3); ceil(d); floor(d); ceil(c); floor(c, 1); round(f)
factorial(b); conv(x, 10, 16); bin(n); hex(n); hex(x); unhex(x); hash(f, d, x); xxhash64(d, t, c); crc32(y); md5(x)
sha1(x); sha2(x, 512); bit_count(n); shiftleft(i, 3); shiftright(n, 65); shiftrightunsigned(i, 1); i & 7; i | 8; i ^ b
~n; getbit(n, 63); width_bucket(d, 0, 10, 5); upper(x); lower(x); initcap(x); reverse(x); length(x); octet_length(x)
bit_length(y); ascii(x); chr(i); trim(x); ltrim('a', x); rtrim(x); lpad(x, 20, 'ß'); rpad(x, 3, '-'); repeat(x, 2)
substr(x, 2); substr(x, -3, 2); substring(x, 0, 3); left(x, 2); right(x, 2); instr(x, 'a'); locate('t', x, 3)
position('e', x); replace(x, 'a', 'bb'); translate(x, 'abc', 'xy'); overlay(x PLACING 'Q' FROM 2); concat(x, x)
concat_ws('|', x, CAST(i AS STRING)); x || CAST(d AS STRING); split_part(x, ' ', 1); split(x, '[ ,]')[0]
element_at(split(x, ''), 1); regexp_extract(x, '([a-z]+)', 1); regexp_replace(x, '[aeiou]', '*'); regexp_count(x, '.')
regexp_substr(x, '[0-9]+'); regexp_instr(x, 'e'); x RLIKE '^.*$'; x LIKE '%a%'; x LIKE '_l%'; x ILIKE '%STRASSE%'
x LIKE '%\\u2028%'; x LIKE 'a%' ESCAPE '!'; startswith(x, 'p'); contains(x, ''); endswith(x, 'text'); soundex(x)
levenshtein(x, 'plane'); format_string('%s-%05d', x, i); format_number(d, 2); format_number(n, '#,##0.#'); base64(y)
unbase64('AQI='); encode(x, 'UTF-16'); decode(y, 'UTF-8'); mask(x); quote(x); is_valid_utf8(CAST(y AS STRING))
make_valid_utf8(CAST(y AS STRING)); luhn_check(x); find_in_set('b', x); elt(2, x, 'two'); char_length(x); collation(x)
x COLLATE UTF8_LCASE = 'PLAIN TEXT'; x COLLATE UNICODE_CI = 'strasse'; lower(x COLLATE UNICODE) = 'x'; typeof(t)
year(dt); month(dt); day(dt); quarter(dt); weekofyear(dt); dayofweek(dt); weekday(dt); dayofyear(dt); last_day(dt)
next_day(dt, 'MON'); add_months(dt, 1); date_add(dt, 100000); date_sub(dt, i % 100); datediff(dt, DATE'2000-01-01')
months_between(t, dt); trunc(dt, 'MM'); date_trunc('WEEK', t); date_trunc('HOUR', u)
date_format(t, 'yyyy-MM-dd EEE HH:mm:ss.SSS VV'); date_format(dt, 'D Q w'); dayname(dt); monthname(t); hour(t)
minute(t); second(t); hour(u); extract(SECOND FROM t); extract(YEAROFWEEK FROM dt); date_part('DOY', t)
unix_timestamp(t); unix_timestamp(x, 'yyyy-MM-dd HH:mm:ss'); from_unixtime(n % 100000, 'HH:mm'); to_timestamp(x)
to_date(x); to_date(x, 'yyyy-MM-dd'); to_unix_timestamp(x); unix_date(dt); unix_micros(t); timestamp_seconds(i)
timestamp_micros(n % 1000000); date_from_unix_date(i % 100000); from_utc_timestamp(t, 'Europe/Berlin')
to_utc_timestamp(t, 'Asia/Kolkata'); convert_timezone('UTC', 'Asia/Tokyo', u); make_date(2024, b, 1)
make_timestamp(2024, 3, 10, 2, 30, 0); make_timestamp_ntz(2024, 3, 10, 2, 30, 1.5); t + INTERVAL 1 MONTH
t - INTERVAL '1 02:03:04' DAY TO SECOND; dt + INTERVAL 1 YEAR; dt - DATE'2000-01-01' > INTERVAL 3 DAYS
(t - TIMESTAMP'2000-01-01') > INTERVAL '1' HOUR; timestampadd(HOUR, 30, t)
timestampdiff(MONTH, t, TIMESTAMP'2024-01-01 00:00:00'); extract(DAY FROM t - u); window(t, '1 hour').start
window_time(window(u, '1 day')); CAST(INTERVAL '1' DAY * b AS STRING); make_interval(0, b).months IS NULL
date_diff(DAY, t, u); dt = CAST(t AS DATE); t > dt; u < t; aggregate(array(i, b, s), 0, (a, v) -> a + coalesce(v, 0))
size(filter(array(i, b), v -> v > 0)); exists(array(d, f), v -> v = 0); forall(array(i, b), v -> v < 100)
array_max(array(d, f)); array_min(array(x, 'm')); array_contains(array(d, 1D), d); array_position(array(i, b), 7)
element_at(transform(array(i, b), (v, k) -> v + k), 1); element_at(array_sort(array(d, f, 1D)), 1)
array_join(array(x, NULL, 'z'), ',', '?'); size(map(coalesce(x, 'n'), 1)); map(1, x)[1]; element_at(map('a', d), 'a')
map_contains_key(map(1, 2), i); cardinality(sequence(1, b % 5)); to_json(named_struct('a', d, 'b', t, 'c', c))
get_json_object(x, '$.b[1]'); from_json(x, 'a INT').a; to_csv(named_struct('a', x, 'b', d)); from_csv(x, 'a STRING').a
schema_of_json('{"a": 1}'); json_array_length(x); struct(i, x).i; named_struct('a', y).a; xpath_int('<a>7</a>', 'a')
variant_get(parse_json('{"a": 1.5}'), '$.a', 'double'); try_variant_get(try_parse_json(x), '$.a', 'int')
is_variant_null(parse_json('null')); url_encode(x); url_decode('a%20b'); parse_url('http://h/p?q=1', 'QUERY', 'q')
hex(aes_encrypt(x, 'abcdefghijklmnop', 'ECB')); equal_null(x, y); nvl2(x, i, n); ifnull(i, -1); zeroifnull(i)
nullifzero(i); decode(i, 3, 'three', 5, 'five', 'other'); to_number('12', '99'); to_char(c, 'S999999999.99')
try_to_number(x, '99.99'); try_cast(x AS INT); try_to_timestamp(x); bit_get(n, 3); assert_true(true); stack_of(i)
"""


@pytest.fixture(scope="module")
def bits(spark):
    spark.sql(ROWS).createOrReplaceTempView("bits")
    return spark


@pytest.fixture(params=[("false", "America/New_York"), ("true", "Asia/Kolkata")], ids=["plain", "ansi"])
def rows(bits, request):
    spark = bits
    wanted = dict(zip(("spark.sql.ansi.enabled", "spark.sql.session.timeZone"), request.param, strict=True))
    before = {key: spark.conf.get(key) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    yield spark.sql(TYPED).localCheckpoint()
    for key, value in before.items():
        spark.conf.set(key, value)


def as_bits(values: pa.ChunkedArray | pa.Array) -> list[str]:
    """The values as text that distinguishes every bit; NaN is NaN."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    return [repr(v) for v in values.to_pylist()]


def prepared(rows) -> tuple[dict[str, object], pl.DataFrame]:
    """The expressions as the optimiser leaves them, and the rows under the ids of their columns."""
    from pyspark.errors import PySparkException

    found = {}
    for text in EXPRESSIONS.replace("\n", ";").split(";"):
        if text.strip():
            try:
                plan = rows.selectExpr("*", f"{text} AS result")._jdf.queryExecution().optimizedPlan()
            except PySparkException:
                continue  # what the settings or this version of Spark refuse
            named = list(items(plan.projectList()))[-1]
            found[text.strip()] = named.child() if named.getClass().getSimpleName() == "Alias" else named
    names = [str(a.exprId().id()) for a in items(rows._jdf.queryExecution().analyzed().output())]
    return found, pl.DataFrame(pl.from_arrow(rows.toArrow().rename_columns(names)))


def by_job(rows, texts: list[str]) -> dict[str, list[str]]:
    """What a Spark job gives; an expression that fails for some row is left out."""
    from pyspark.errors import PySparkException

    try:
        table = rows.selectExpr(*(f"{text} AS e{place}" for place, text in enumerate(texts))).toArrow()
    except PySparkException:
        if len(texts) == 1:
            return {}
        half = len(texts) // 2
        return {**by_job(rows, texts[:half]), **by_job(rows, texts[half:])}
    return {text: as_bits(table.column(place)) for place, text in enumerate(texts)}


def test_the_interpreter_gives_what_a_job_gives(rows):
    exprs, frame = prepared(rows)
    leaves = Leaves(Jvm(rows.sparkSession), Inputs({}, {}, {}), Options())
    here = {}
    for text, expr in exprs.items():
        values = leaves.evaluate([opaque(expr)], frame)
        if values is not None:
            here[text] = as_bits(values[0].to_arrow())
    jobs = by_job(rows, list(here))

    assert len(exprs) > 280
    # One that fails in a job fails here too, and is left to a job, which says why.
    assert here.keys() == jobs.keys()
    assert {t: v for t, v in here.items() if v != jobs[t]} == {}
    is_ansi = rows.sparkSession.conf.get("spark.sql.ansi.enabled") == "true"
    assert len(here) > (200 if is_ansi else 260)


def test_one_expression_is_evaluated_in_several_threads(rows):
    """Variables of lambda functions, and buffers of expressions, belong to one evaluation."""
    exprs, frame = prepared(rows)
    texts = [t for t in exprs if "->" in t or "regexp" in t or "date_format" in t or "translate" in t]
    leaves = Leaves(Jvm(rows.sparkSession), Inputs({}, {}, {}), Options())
    handles = [opaque(exprs[text]) for text in texts]
    many = pl.concat([frame] * 50)
    expected = [as_bits(leaves.evaluate([h], many)[0].to_arrow()) for h in handles]
    wrong: list[str] = []

    def evaluate() -> None:
        for _ in range(10):
            for text, handle, values in zip(texts, handles, expected, strict=True):
                if as_bits(leaves.evaluate([handle], many)[0].to_arrow()) != values:
                    wrong.append(text)

    threads = [threading.Thread(target=evaluate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
