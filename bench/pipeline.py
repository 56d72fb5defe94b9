"""A warehouse of some fifty small stream tables in three layers, in the manner of TPC-DI: a broker and its customers.

The first layer cleans what comes in and gives each version of a customer, account, company or security the time for which it
holds; the second joins facts to the versions of their day; the third has sums, ranks and windows over these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

CUSTOMERS, ACCOUNTS, COMPANIES, SECURITIES, DAYS, TRADES = 400, 600, 60, 120, 90, 6000

_VERSIONS: Final = {"customer": CUSTOMERS, "account": ACCOUNTS, "company": COMPANIES, "security": SECURITIES}
"""Tables of which a new version of a row is inserted, with its first day."""

BASES: Final[Mapping[str, str]] = {
    "raw_customer": f"""SELECT id % {CUSTOMERS} AS id, id DIV {CUSTOMERS} * 30 AS since, concat('name ',
            id % {CUSTOMERS}) AS name,
        id % 3 AS tier, id % 5 AS region, id % 7 AS tax FROM range({CUSTOMERS * 2})""",
    "raw_account": f"""SELECT id % {ACCOUNTS} AS id, id DIV {ACCOUNTS} * 20 AS since, pmod(hash(id % {ACCOUNTS}),
            {CUSTOMERS}) AS customer,
        id % 11 AS broker, IF(id % 13 = 0, 'closed', 'open') AS status FROM range({ACCOUNTS * 2})""",
    "raw_company": f"""SELECT id % {COMPANIES} AS id, id DIV {COMPANIES} * 45 AS since, concat('company ',
            id % {COMPANIES}) AS name,
        id % 8 AS industry, 'A' AS rating FROM range({COMPANIES * 2})""",
    "raw_security": f"""SELECT id % {SECURITIES} AS id, id DIV {SECURITIES} * 40 AS since, id % {COMPANIES} AS company,
        concat('S', id % {SECURITIES}) AS symbol, 1000 + id AS shares FROM range({SECURITIES * 2})""",
    "raw_market": f"""SELECT id % {SECURITIES} AS security, id DIV {SECURITIES} AS day,
        CAST(10 + pmod(hash(id), 900) / 10 AS DECIMAL(10, 2)) AS close, pmod(hash(id, 1), 5000) AS volume
            FROM range({SECURITIES * DAYS})""",
    "raw_trade": f"""SELECT id, pmod(hash(id), {ACCOUNTS}) AS account, pmod(hash(id, 2), {SECURITIES}) AS security,
            id % {DAYS} AS day,
        IF(id % 3 = 0, 'sell', 'buy') AS type, 1 + id % 50 AS quantity, CAST(10 + pmod(hash(id, 3),
            900) / 10 AS DECIMAL(10, 2)) AS price,
        IF(id % 17 = 0, 'cancelled', 'done') AS status FROM range({TRADES})""",
    "raw_cash": f"""SELECT id, pmod(hash(id), {ACCOUNTS}) AS account, id % {DAYS} AS day,
        CAST(id % 400 - 100 AS DECIMAL(10, 2)) AS amount FROM range({TRADES // 2})""",
    "raw_watch": f"""SELECT id, pmod(hash(id), {CUSTOMERS}) AS customer, pmod(hash(id, 4), {SECURITIES}) AS security,
            id % {DAYS} AS day,
        IF(id % 4 = 0, 'off', 'on') AS action FROM range({TRADES // 4})""",
    "raw_prospect": f"""SELECT id, concat('name ', id % {CUSTOMERS * 2}) AS name, id % 100 AS worth, id % 9 AS cards
            FROM range(1000)""",
    "raw_rate": "SELECT id, CAST(id * 2 AS DECIMAL(5, 2)) AS percent, concat('rate ', id) AS name FROM range(7)",
    "raw_industry": "SELECT id, concat('industry ', id) AS name, id % 3 AS sector FROM range(8)",
}

_AS_OF: Final = "{fact}.day >= {dim}.since AND ({dim}.until IS NULL OR {fact}.day < {dim}.until)"


def queries() -> Mapping[str, str]:
    """Return the queries, each after those that it reads."""
    return {**_first_layer(), **_second_layer(), **_third_layer()}


def _as_of(fact: str, dim: str) -> str:
    return _AS_OF.format(fact=fact, dim=dim)


def _first_layer() -> dict[str, str]:
    versions = {
        f"s_{name}": f"SELECT *, lead(since) OVER (PARTITION BY id ORDER BY since) AS until FROM raw_{name}"
        for name in _VERSIONS
    }
    return {
        **versions,
        "s_market": """SELECT security, day, close, volume, lag(close) OVER (PARTITION BY security ORDER BY day) AS before
            FROM raw_market""",
        "s_trade": "SELECT id, account, security, day, type, quantity, price FROM raw_trade WHERE status = 'done'",
        "s_cancelled": "SELECT id, account, security, day FROM raw_trade WHERE status = 'cancelled'",
        "s_cash": "SELECT id, account, day, amount FROM raw_cash WHERE amount <> 0",
        "s_watch": """SELECT customer, security, min(CASE WHEN action = 'on' THEN day END) AS since,
            max(CASE WHEN action = 'off' THEN day END) AS until FROM raw_watch GROUP BY customer, security""",
        "s_prospect": """SELECT name, worth, cards FROM (
            SELECT *, row_number() OVER (PARTITION BY name ORDER BY id DESC) AS place FROM raw_prospect) WHERE place = 1""",
        "s_rate": "SELECT id, name, percent / 100 AS share FROM raw_rate",
        "s_industry": "SELECT id, name, sector FROM raw_industry",
        "s_day": "SELECT day, count(*) AS prices, sum(volume) AS volume FROM raw_market GROUP BY day",
    }


def _second_layer() -> dict[str, str]:
    return {
        "d_customer": """SELECT c.id, c.since, c.until, c.name, c.tier, c.region, r.share AS tax
            FROM s_customer c JOIN s_rate r ON c.tax = r.id""",
        "d_customer_now": "SELECT id, name, tier, region FROM s_customer WHERE until IS NULL",
        "d_account": """SELECT a.id, greatest(a.since, c.since) AS since, a.until, a.broker, a.status, c.id AS customer,
            c.tier, c.region
            FROM s_account a JOIN s_customer c ON a.customer = c.id AND a.since >= c.since
            AND (c.until IS NULL OR a.since < c.until)""",
        "d_company": """SELECT c.id, c.since, c.until, c.name, i.name AS industry, i.sector
            FROM s_company c JOIN s_industry i ON c.industry = i.id""",
        "d_security": """SELECT s.id, s.since, s.until, s.symbol, s.shares, c.name AS company, c.industry
            FROM s_security s JOIN s_company k ON s.company = k.id AND s.since >= k.since
            AND (k.until IS NULL OR s.since < k.until)
            JOIN d_company c ON c.id = k.id AND c.since = k.since""",
        "d_broker": """SELECT broker, count(*) AS accounts, count(DISTINCT customer) AS customers FROM s_account
            GROUP BY broker""",
        "d_prospect": """SELECT p.name, p.worth, p.cards, c.id IS NOT NULL AS is_customer
            FROM s_prospect p LEFT JOIN d_customer_now c ON p.name = c.name""",
        "f_trade": f"""SELECT t.id, t.day, t.type, t.quantity, t.price, t.quantity * t.price AS value, a.id AS account,
            a.customer,
            a.broker, a.region, s.symbol, s.industry FROM s_trade t JOIN d_account a ON t.account = a.id
            AND {_as_of("t", "a")}
            JOIN d_security s ON t.security = s.id AND {_as_of("t", "s")}""",
        "f_market": f"""SELECT m.day, s.symbol, s.industry, m.close, m.close - m.before AS rise, m.volume,
            m.close * s.shares AS cap
            FROM s_market m JOIN d_security s ON m.security = s.id AND {_as_of("m", "s")}""",
        "f_high": """SELECT security, day, close, max(close) OVER
            (PARTITION BY security ORDER BY day ROWS BETWEEN 29 PRECEDING AND CURRENT ROW) AS high FROM s_market""",
        "f_cash": f"""SELECT c.id, c.day, c.amount, a.id AS account, a.customer, a.broker
            FROM s_cash c JOIN d_account a ON c.account = a.id AND {_as_of("c", "a")}""",
        "f_balance": """SELECT account, day, sum(amount) OVER (PARTITION BY account ORDER BY day, id) AS balance, id
            FROM s_cash""",
        "f_holding": """SELECT account, security, sum(CASE type WHEN 'buy' THEN quantity ELSE -quantity END) AS held
            FROM s_trade GROUP BY account, security""",
        "f_watch": f"""SELECT w.customer, s.symbol, w.since, w.until FROM (SELECT *, since AS day FROM s_watch) w
            JOIN d_security s ON w.security = s.id AND {_as_of("w", "s")}""",
        "f_cancelled": """SELECT c.id, c.day, a.customer, a.broker FROM s_cancelled c
            JOIN d_account a ON c.account = a.id AND a.until IS NULL""",
    }


def _third_layer() -> dict[str, str]:
    return {
        "m_region_day": "SELECT region, day, count(*) AS n, sum(value) AS value FROM f_trade GROUP BY region, day",
        "m_industry_day": """SELECT industry, day, sum(volume) AS volume, avg(close) AS close FROM f_market
            GROUP BY industry, day""",
        "m_customer": "SELECT customer, count(*) AS n, sum(value) AS value, max(day) AS last FROM f_trade GROUP BY customer",
        "m_customer_rank": """SELECT customer, value, rank() OVER (ORDER BY value DESC) AS place
            FROM (SELECT customer, sum(value) AS value FROM f_trade GROUP BY customer)""",
        "m_broker": """SELECT t.broker, d.accounts, sum(t.value) AS value, count(*) AS n
            FROM f_trade t JOIN d_broker d ON t.broker = d.broker GROUP BY t.broker, d.accounts""",
        "m_broker_rank": """SELECT broker, value, dense_rank() OVER (ORDER BY value DESC) AS place
            FROM (SELECT broker, sum(value) AS value FROM f_trade GROUP BY broker)""",
        "m_best_symbols": """SELECT symbol, sum(quantity) AS quantity FROM f_trade GROUP BY symbol
            ORDER BY quantity DESC, symbol LIMIT 20""",
        "m_symbol_rank": """SELECT industry, symbol, value, row_number() OVER (PARTITION BY industry ORDER BY value DESC,
            symbol) AS place
            FROM (SELECT industry, symbol, sum(value) AS value FROM f_trade GROUP BY industry, symbol)""",
        "m_movers": """SELECT day, symbol, rise FROM (
            SELECT day, symbol, rise, rank() OVER (PARTITION BY day ORDER BY rise DESC) AS place FROM f_market
            WHERE rise IS NOT NULL)
            WHERE place <= 3""",
        "m_near_high": "SELECT security, count(*) AS days FROM f_high WHERE close >= high * 0.95 GROUP BY security",
        "m_cap": "SELECT symbol, cap, rank() OVER (ORDER BY cap DESC) AS place FROM f_market WHERE day = 89",
        "m_cash": "SELECT customer, sum(amount) AS amount, count(*) AS n FROM f_cash GROUP BY customer",
        "m_overdrawn": "SELECT account, min(balance) AS lowest FROM f_balance GROUP BY account HAVING min(balance) < 0",
        "m_wealth": """SELECT c.id, c.name, coalesce(t.value, 0) AS traded, coalesce(k.amount, 0) AS cash
            FROM d_customer_now c LEFT JOIN m_customer t ON t.customer = c.id LEFT JOIN m_cash k ON k.customer = c.id""",
        "m_tier": """SELECT c.tier, c.region, count(*) AS customers, sum(w.traded) AS traded
            FROM d_customer_now c JOIN m_wealth w ON w.id = c.id GROUP BY c.tier, c.region""",
        "m_taxes": """SELECT c.id, sum(t.value) * c.tax AS due FROM f_trade t JOIN d_customer c
            ON t.customer = c.id AND c.until IS NULL GROUP BY c.id, c.tax""",
        "m_watched": """SELECT w.symbol, count(*) AS watchers, count(t.customer) AS traders
            FROM f_watch w LEFT JOIN (SELECT DISTINCT customer, symbol FROM f_trade) t
            ON w.customer = t.customer AND w.symbol = t.symbol GROUP BY w.symbol""",
        "m_prospects": "SELECT is_customer, count(*) AS n, avg(worth) AS worth FROM d_prospect GROUP BY is_customer",
        "m_idle": """SELECT a.id, a.customer FROM d_account a WHERE a.until IS NULL
            AND NOT EXISTS (SELECT 1 FROM s_trade t WHERE t.account = a.id AND t.day > 60)""",
        "m_short": "SELECT account, security, held FROM f_holding WHERE held < 0",
        "m_days": """SELECT s.day, s.volume, sum(m.value) AS traded FROM s_day s LEFT
            JOIN m_region_day m ON s.day = m.day GROUP BY s.day, s.volume""",
        "m_total": "SELECT sum(n) AS n, sum(value) AS value FROM m_customer",
    }


def make_bases(spark: SparkSession) -> None:
    """Create the base tables."""
    for name, query in BASES.items():
        spark.sql(f"CREATE TABLE {name} USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true) AS {query}")


def change_few(spark: SparkSession, number: int) -> None:
    """A few trades, a payment, a price, and a customer who moves."""
    first = TRADES * 10 + number * 10
    spark.sql(
        f"""INSERT INTO raw_trade SELECT id, pmod(hash(id), {ACCOUNTS}), pmod(hash(id, 2), {SECURITIES}), 80 + id % 10,
            'buy', 1 + id % 50, CAST(20 AS DECIMAL(10, 2)), 'done' FROM range({first}, {first + 3})"""
    )
    spark.sql(f"INSERT INTO raw_cash VALUES ({first}, {number % ACCOUNTS}, 85, 12.5)")
    spark.sql(f"UPDATE raw_market SET close = close + 1 WHERE security = {number % SECURITIES} AND day = {DAYS - 1}")
    spark.sql(f"INSERT INTO raw_customer VALUES ({number % CUSTOMERS}, {70 + number}, 'moved {number}', 1, 4, 2)")


def change_many(spark: SparkSession, number: int) -> None:
    """Another price of a fifth of the trades and of all securities, and new versions of many customers and accounts."""
    spark.sql(f"UPDATE raw_trade SET price = price + 1 WHERE id % 5 = {number % 5}")
    spark.sql(f"UPDATE raw_market SET close = close + 1, volume = volume + 3 WHERE day % 3 = {number % 3}")
    spark.sql(
        f"""INSERT INTO raw_customer SELECT id, {70 + number}, concat('name ', id), id % 3, id % 5, id % 7
            FROM range({CUSTOMERS}) WHERE id % 4 = {number % 4}"""
    )
    spark.sql(f"UPDATE raw_account SET broker = broker + 1 WHERE id % 4 = {number % 4}")
