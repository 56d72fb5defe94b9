"""RF1, RF2 and RF3: orders and their lines come, go and change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trickle.testing.tpch.write import Change

if TYPE_CHECKING:
    from trickle.testing.tpch.draw import Draw

UNIT_PRICE = 900
"""No unit costs less, so a price stays positive whatever the quantity becomes."""


def insert_orders(draw: Draw) -> tuple[Change, ...]:
    """RF1: copies of drawn orders and lines under new keys, for drawn customers; every tenth is a bulk order."""
    highest = draw.highest("orders")
    picked = draw.sample("orders", draw.rows("orders"), "insert order")
    orders = f"""
        SELECT {highest} + rank AS o_orderkey,
               1 + {draw.below(draw.highest("customer"), "customer", "o_orderkey")} AS o_custkey,
               o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, o_clerk, o_shippriority, o_comment,
               'insert' AS _op
        FROM ({picked})"""
    lines = f"""
        SELECT {highest} + rank AS l_orderkey, l_partkey, l_suppkey, l_linenumber,
               CAST(new_quantity AS decimal(15, 2)) AS l_quantity,
               CAST(l_extendedprice + (new_quantity - l_quantity) * {UNIT_PRICE} AS decimal(15, 2)) AS l_extendedprice,
               l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate,
               l_shipinstruct, l_shipmode, l_comment, 'insert' AS _op
        FROM (SELECT *, CASE WHEN rank % 10 = 0 THEN 45 + l_linenumber % 6 ELSE CAST(l_quantity AS int) END
                        AS new_quantity
              FROM lineitem JOIN ({picked}) AS picked ON l_orderkey = o_orderkey)"""
    return Change("orders", orders), Change("lineitem", lines)


def delete_orders(draw: Draw) -> tuple[Change, ...]:
    """RF2: drawn orders, and with them all their lines."""
    picked = draw.sample("orders", draw.rows("orders"), "delete order")
    return (
        Change("orders", f"SELECT o_orderkey, 'delete' AS _op FROM ({picked})"),
        Change("lineitem", f"SELECT o_orderkey AS l_orderkey, 'delete' AS _op FROM ({picked})", on=("l_orderkey",)),
    )


def update_lines_and_customers(draw: Draw) -> tuple[Change, ...]:
    """RF3: other quantities and prices for drawn lines; another market segment for half as many customers."""
    line = ("l_orderkey", "l_linenumber")
    lines = f"""
        SELECT l_orderkey, l_linenumber, CAST(new_quantity AS decimal(15, 2)) AS l_quantity,
               CAST(l_extendedprice + (new_quantity - l_quantity) * {UNIT_PRICE} + {draw.below(99, "price", *line)}
                    AS decimal(15, 2)) AS l_extendedprice, 'update' AS _op
        FROM (SELECT *, 1 + {draw.below(50, "quantity", *line)} AS new_quantity
              FROM ({draw.sample("lineitem", draw.rows("lineitem"), "update line")}))"""
    segments = "AUTOMOBILE,BUILDING,FURNITURE,MACHINERY,HOUSEHOLD"
    place = f"strpos('{segments}', c_mktsegment)"
    others = f"'{segments},{segments}'"  # read on from the customer's own segment: the next four differ from it
    following = f"substr({others}, {place} + length(c_mktsegment) + 1)"
    customers = f"""
        SELECT c_custkey, split_part({following}, ',', 1 + {draw.below(4, "segment", "c_custkey")}) AS c_mktsegment,
               'update' AS _op
        FROM ({draw.sample("customer", draw.rows("customer", share=0.5), "update customer")})"""
    return Change("lineitem", lines), Change("customer", customers)
