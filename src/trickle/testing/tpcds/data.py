"""TPC-DS data at a small scale, dense enough for the queries to have rows, with changes in rounds.

``duckdb`` makes the rows (scale 0.01: 28,810 sales in stores, 73,049 dates). At that scale there is one store, one
warehouse and so on, and customers and items that hardly meet; so dimensions get more rows, and values are drawn from
those that the queries ask for.

Every row has a *life*: what it is before the first round and after each of three. Lives depend on the row's key alone,
so a sale may come a round before its item, and dimension rows go and return under the facts that refer to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trickle.testing.tpcds.shape import SHAPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession

ROUNDS: Final = 3

LIVES: Final = (".xxx", "..xx", "...x", "x...", "xx.x", "x.xx", "xxx.", "xyyy", "xxyy", "xyyx", "xxxy")
"""What becomes of rows: not there (``.``), as generated (``x``) or changed (``y``), at the start and after each round."""


@dataclass(frozen=True, slots=True)
class Table:
    """How a table changes.

    Attributes:
        key: Its primary key.
        odds: Rows in a thousand that each of the lives befalls.
        lives: Those of single rows by their key, for small tables. With neither, the table never changes.
        changed: Columns of a changed row, as SQL over the row.
        change_feed: Whether the table records its changes.
    """

    key: tuple[str, ...]
    odds: int = 0
    lives: Mapping[int, str] = field(default_factory=dict)
    changed: Mapping[str, str] = field(default_factory=dict)
    change_feed: bool = True


TABLES: Final[Mapping[str, Table]] = MappingProxyType(
    {
        "call_center": Table(
            ("cc_call_center_sk",),
            lives={1: "xyyx", 2: "x.xx", 4: "..xx", 5: "xxxy"},
            changed={"cc_manager": "upper(cc_manager)", "cc_county": "'Bronx County'"},
        ),
        "catalog_page": Table(
            ("cp_catalog_page_sk",), 10, changed={"cp_catalog_page_id": "'CHANGED'"}, change_feed=False
        ),
        "catalog_returns": Table(
            ("cr_item_sk", "cr_order_number"),
            6,
            changed={
                "cr_return_quantity": "cr_return_quantity + 1",
                "cr_return_amount": "cr_return_amount + 10",
                "cr_return_amt_inc_tax": "cr_return_amt_inc_tax + 10",
                "cr_net_loss": "cr_net_loss + 10",
                "cr_refunded_cash": "cr_refunded_cash / 2",
                "cr_call_center_sk": "NULL",
            },
        ),
        "catalog_sales": Table(
            ("cs_item_sk", "cs_order_number"),
            4,
            changed={
                "cs_quantity": "cs_quantity + 1",
                "cs_sales_price": "cs_sales_price + 1",
                "cs_ext_sales_price": "cs_ext_sales_price + 1",
                "cs_ext_discount_amt": "cs_ext_discount_amt * 2",
                "cs_net_profit": "cs_net_profit - 1",
                "cs_warehouse_sk": "1 + cs_warehouse_sk % 5",
                "cs_promo_sk": "NULL",
            },
            change_feed=False,
        ),
        "customer": Table(
            ("c_customer_sk",),
            12,
            changed={
                "c_current_addr_sk": "1 + c_current_addr_sk % 500",
                "c_preferred_cust_flag": "CASE WHEN c_preferred_cust_flag = 'Y' THEN 'N' ELSE 'Y' END",
                "c_last_name": "NULL",
            },
        ),
        "customer_address": Table(
            ("ca_address_sk",), 10, changed={"ca_state": "'GA'", "ca_gmt_offset": "-5", "ca_city": "'Midway'"}
        ),
        "customer_demographics": Table(
            ("cd_demo_sk",),
            8,
            changed={"cd_marital_status": "'M'", "cd_dep_count": "cd_dep_count + 1"},
            change_feed=False,
        ),
        "date_dim": Table(
            ("d_date_sk",), 3, changed={"d_day_name": "'Sunday'", "d_dow": "0", "d_dom": "1", "d_qoy": "2"}
        ),
        "household_demographics": Table(
            ("hd_demo_sk",),
            5,
            changed={"hd_vehicle_count": "3", "hd_buy_potential": "'>10000'", "hd_income_band_sk": "NULL"},
        ),
        "income_band": Table(("ib_income_band_sk",)),
        "inventory": Table(
            ("inv_date_sk", "inv_item_sk", "inv_warehouse_sk"),
            3,
            changed={"inv_quantity_on_hand": "coalesce(inv_quantity_on_hand, 0) * 3"},
        ),
        "item": Table(
            ("i_item_sk",),
            20,
            changed={
                "i_current_price": "i_current_price + 5",
                "i_category": "'Books'",
                "i_manager_id": "1",
                "i_color": "NULL",
            },
        ),
        "promotion": Table(
            ("p_promo_sk",),
            lives={1: "xyyx", 2: "x.xx", 3: "xx.x", 5: "..xx", 7: "xxyy", 8: ".xxx", 11: "xxx.", 13: "...x"},
            changed={"p_channel_tv": "'Y'", "p_channel_event": "'Y'"},
            change_feed=False,
        ),
        "reason": Table(
            ("r_reason_sk",),
            lives={1: "xx.x", 5: "..xx", 14: "...x", 20: "xyyx", 28: "xyyx", 30: "x..."},
            changed={"r_reason_desc": "'changed ' || r_reason_sk"},
        ),
        "ship_mode": Table(
            ("sm_ship_mode_sk",),
            lives={1: "xyyx", 3: "x.xx", 5: "..xx", 9: "xxx."},
            changed={"sm_type": "'CHANGED'", "sm_carrier": "'DHL'"},
            change_feed=False,
        ),
        "store": Table(
            ("s_store_sk",),
            lives={1: "xx.x", 3: "x.xx", 4: "xyyy", 5: "..xx", 6: "xxyx", 7: "...x", 8: ".xxx", 10: "xxx."},
            changed={"s_city": "'Fairview'", "s_state": "'TN'", "s_county": "'Bronx County'"},
        ),
        "store_returns": Table(
            ("sr_item_sk", "sr_ticket_number"),
            6,
            changed={
                "sr_return_quantity": "sr_return_quantity + 1",
                "sr_return_amt": "sr_return_amt + 10",
                "sr_net_loss": "sr_net_loss + 10",
                "sr_reason_sk": "28",
                "sr_customer_sk": "NULL",
            },
            change_feed=False,
        ),
        "store_sales": Table(
            ("ss_item_sk", "ss_ticket_number"),
            4,
            changed={
                "ss_quantity": "ss_quantity + 1",
                "ss_sales_price": "ss_sales_price + 1",
                "ss_ext_sales_price": "ss_ext_sales_price + 1",
                "ss_list_price": "ss_list_price * 2",
                "ss_net_profit": "ss_net_profit - 1",
                "ss_store_sk": "1 + ss_store_sk % 12",
                "ss_addr_sk": "NULL",
            },
        ),
        "time_dim": Table(("t_time_sk",), 1, changed={"t_hour": "9", "t_minute": "15", "t_meal_time": "'dinner'"}),
        "warehouse": Table(
            ("w_warehouse_sk",),
            lives={1: "xyyx", 2: "x.xx", 4: "..xx", 6: "xxx."},
            changed={"w_state": "'GA'", "w_warehouse_sq_ft": "w_warehouse_sq_ft + 1"},
        ),
        "web_page": Table(
            ("wp_web_page_sk",),
            lives={2: "xyyx", 4: "x.xx", 6: "..xx", 7: "xx.x", 9: "...x"},
            changed={"wp_char_count": "5100"},
        ),
        "web_returns": Table(
            ("wr_item_sk", "wr_order_number"),
            10,
            changed={
                "wr_return_quantity": "wr_return_quantity + 1",
                "wr_return_amt": "wr_return_amt + 10",
                "wr_net_loss": "wr_net_loss + 10",
                "wr_fee": "wr_fee * 2",
                "wr_web_page_sk": "NULL",
            },
            change_feed=False,
        ),
        "web_sales": Table(
            ("ws_item_sk", "ws_order_number"),
            6,
            changed={
                "ws_quantity": "ws_quantity + 1",
                "ws_sales_price": "ws_sales_price + 1",
                "ws_ext_sales_price": "ws_ext_sales_price + 1",
                "ws_ext_discount_amt": "ws_ext_discount_amt * 2",
                "ws_net_profit": "ws_net_profit - 1",
                "ws_warehouse_sk": "1 + ws_warehouse_sk % 5",
                "ws_bill_customer_sk": "NULL",
            },
        ),
        "web_site": Table(
            ("web_site_sk",),
            lives={1: "xyyx", 2: "xx.x", 3: "..xx", 4: "x.xx"},
            changed={"web_name": "'site_1'", "web_company_name": "'pri'"},
        ),
    }
)


class Rows:
    """The generated rows, as they are before the first round and after each."""

    def __init__(self, scale: float = 0.01) -> None:
        """Generate them, which takes a second or two."""
        import duckdb

        self.engine: Any = duckdb.connect()
        self.engine.execute("LOAD tpcds")
        self.engine.execute(f"CALL dsdgen(sf={scale})")
        for statement in SHAPE:
            self.engine.execute(statement)
        columns = "SELECT table_name, column_name, data_type FROM information_schema.columns"
        self._types = {(table, column): kind for table, column, kind in self.engine.execute(columns).fetchall()}

    def at(self, table: str, round_: int) -> str:
        """Return a query: the rows of a table after a round, 0 for those at the start."""
        states = f"substr({_life(table)}, {round_ + 1}, 1)"
        return _union(
            f"SELECT * FROM {table} WHERE {states} = 'x'",
            f"SELECT {self._changed(table)} FROM {table} WHERE {states} = 'y'",
        )

    def change(self, table: str, round_: int) -> str:
        """Return a query: what a round does to a table, each row with ``insert``, ``update`` or ``delete`` in ``_op``."""
        step = f"substr({_life(table)}, {round_}, 2)"
        return _union(
            f"SELECT *, 'delete' AS _op FROM {table} WHERE {step} IN ('x.', 'y.')",
            f"SELECT *, 'insert' AS _op FROM {table} WHERE {step} IN ('.x')",
            f"SELECT *, 'update' AS _op FROM {table} WHERE {step} IN ('yx')",
            f"SELECT {self._changed(table)}, 'update' AS _op FROM {table} WHERE {step} IN ('xy')",
        )

    def _changed(self, table: str) -> str:
        """Return a select list: the columns of a changed row."""
        values = (
            f"CAST({value} AS {self._types[table, column]}) AS {column}"
            for column, value in TABLES[table].changed.items()
        )
        return f"* REPLACE ({', '.join(values)})" if TABLES[table].changed else "*"

    def read(self, query: str) -> pa.Table:
        """Run a query."""
        return self.engine.execute(query).arrow()


def _life(table: str) -> str:
    """Return an expression: the life of a row."""
    key, odds = ", ".join(TABLES[table].key), TABLES[table].odds
    drawn = f"hash('{table}', {key}) % 1000"
    lives = [f"WHEN {key} = {number} THEN '{life}'" for number, life in TABLES[table].lives.items()]
    lives += [f"WHEN {drawn} < {(place + 1) * odds} THEN '{life}'" for place, life in enumerate(LIVES) if odds]
    return f"CASE {' '.join(lives)} ELSE 'xxxx' END" if lives else "'xxxx'"


def _union(*queries: str) -> str:
    return " UNION ALL ".join(queries)


@dataclass(frozen=True, slots=True)
class Sources:
    """The tables as Delta tables, one folder each under ``location``."""

    rows: Rows
    location: Path

    def path(self, table: str) -> str:
        """Return the folder of one Delta table."""
        return str(self.location / table)


def load(spark: SparkSession, *, location: Path, scale: float = 0.01) -> Sources:
    """Make the source tables in the current schema of the session, stored under ``location``."""
    from deltalake import write_deltalake

    sources = Sources(Rows(scale), location)
    for name, table in TABLES.items():
        write_deltalake(
            sources.path(name),
            sources.rows.read(sources.rows.at(name, 0)),
            configuration={"delta.enableChangeDataFeed": str(table.change_feed).lower()},
        )
        spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{sources.path(name)}'")
    return sources


def mutate(sources: Sources, round_: int) -> dict[str, int]:
    """Make the changes of a round, one commit for each table, and give how many rows each of them touched."""
    from deltalake import DeltaTable

    touched = {}
    for name, table in TABLES.items():
        rows = sources.rows.read(sources.rows.change(name, round_))
        touched[name] = rows.num_rows
        if not rows.num_rows:
            continue
        columns = {column: f"source.{column}" for column in rows.column_names if column != "_op"}
        merge = DeltaTable(sources.path(name)).merge(
            rows,
            " AND ".join(f"target.{key} = source.{key}" for key in table.key),
            source_alias="source",
            target_alias="target",
        )
        merge = merge.when_matched_delete("source._op = 'delete'")
        merge = merge.when_matched_update(columns, "source._op = 'update'")
        merge.when_not_matched_insert(columns, "source._op = 'insert'").execute()
    return touched
