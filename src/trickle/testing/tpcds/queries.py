"""The 99 queries in Spark's dialect, made of the texts that ``duckdb`` carries.

- Names are quoted as in Spark; columns without one keep the name that Spark gives them.
- An ORDER BY beside a LIMIT goes on to every column, so that there are no ties.
- Constants that hardly any row meets at a small scale are eased.
"""

from __future__ import annotations

import re
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NUMBERS: Final = range(1, 100)

Edits = tuple[tuple[str, str], ...]

#: What is replaced in the text of a query, white space counting as one space.
EDITS: Final[Mapping[int, Edits]] = MappingProxyType(
    {
        # A limit without an order; each gives one row.
        28: (("LIMIT 100", "ORDER BY 1 LIMIT 100"),),
        32: (("LIMIT 100", "ORDER BY 1 LIMIT 100"),),
        38: (("LIMIT 100", "ORDER BY 1 LIMIT 100"), ("c_first_name, d_date FROM", "c_first_name, d_year FROM")),
        97: (("LIMIT 100", "ORDER BY 1 LIMIT 100"),),
        # Constants.
        4: (("2001", "1999"),),
        13: (
            ("hd_dep_count = 1", "hd_dep_count > 1"),
            ("hd_dep_count = 3", "hd_dep_count > 1"),
            ("ss_net_profit BETWEEN 100 AND 200", "ss_net_profit BETWEEN -9000 AND 200"),
            ("ss_net_profit BETWEEN 150 AND 300", "ss_net_profit BETWEEN -9000 AND 300"),
        ),
        16: (("'2002-02-01'", "'1999-02-01'"),),
        23: (("count(*) >4", "count(*) >1"), ("d_moy = 2", "d_moy > 2")),
        25: (("d1.d_moy = 4", "d1.d_moy > 2"),),
        34: (("cnt BETWEEN 15 AND 20", "cnt BETWEEN 8 AND 20"),),
        49: (
            ("wr.wr_return_amt > 10000", "wr.wr_return_amt > 10"),
            ("cr.cr_return_amount > 10000", "cr.cr_return_amount > 10"),
            ("sr.sr_return_amt > 10000", "sr.sr_return_amt > 10"),
            ("d_moy = 12", "d_moy > 2"),
        ),
        54: (("AND i_class = 'maternity'", ""), ("d_moy = 12 AND d_year = 1998 )", "d_moy > 2 AND d_year = 1998 )")),
        58: (("0.9 *", "0.01 *"), ("1.1 *", "100 *")),
        64: (("BETWEEN 64 AND 64 + 10", "BETWEEN 0 AND 100"), ("BETWEEN 64 + 1 AND 64 + 15", "BETWEEN 0 AND 99")),
        73: (("cnt BETWEEN 1 AND 5", "cnt BETWEEN 1 AND 15"),),
        82: (("BETWEEN 62 AND 62+30", "BETWEEN 1 AND 99"),),
        83: (("IN ('2000-06-30', '2000-09-27', '2000-11-17')", "BETWEEN '2000-01-30' AND '2000-11-17'"),),
        85: (
            ("ws_net_profit BETWEEN 100 AND 200", "ws_net_profit BETWEEN -9000 AND 9000"),
            ("ws_net_profit BETWEEN 150 AND 300", "ws_net_profit BETWEEN -9000 AND 9000"),
            ("ws_sales_price BETWEEN 100.00 AND 150.00", "ws_sales_price > 1"),
            ("ws_sales_price BETWEEN 50.00 AND 100.00", "ws_sales_price > 1"),
            ("d_year = 2000", "d_year >= 1999"),
        ),
        90: (("AT,", "am,"),),
        91: (("d_moy = 11", "d_moy > 2"), ("d_year = 1998", "d_year >= 1998")),
    }
)


@cache
def queries() -> Mapping[int, str]:
    """Return the text of each query by its number."""
    import duckdb

    engine = duckdb.connect()
    engine.execute("LOAD tpcds")
    engine.execute("CALL dsdgen(sf=0)")  # the tables without rows
    texts = engine.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
    return MappingProxyType({number: _adapted(number, text, engine) for number, text in texts})


def _adapted(number: int, text: str, engine: Any) -> str:
    plain = re.sub(r"--[^\n]*", "", text).strip().rstrip(";")
    plain = re.sub(r"\s+", " ", plain).strip()
    for old, new in EDITS.get(number, ()):
        if old not in plain:
            message = f"query {number} has no {old!r}"
            raise ValueError(message)
        plain = plain.replace(old, new)
    columns = engine.execute(f"DESCRIBE {plain}").fetchall()
    every = ", ".join(str(place) for place in range(1, len(columns) + 1))
    return re.sub(" LIMIT 100$", f", {every} LIMIT 100", plain).replace('"', "`")
