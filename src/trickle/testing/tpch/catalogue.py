"""RF4: parts, suppliers, their offers (partsupp) and nations are updated, inserted and deleted.

Most rows are drawn at the rate. A handful per cycle, whatever the scale, is aimed at the constants of the queries,
so that even at a small scale every query has work to do:

    part       one part takes the look that q8, q17 and q19 ask for, one q14's, one q2's, one q9's and q20's
    supplier   one supplier moves out of and one into each nation that q7, q8, q11, q20 and q21 name; one is complained
               about (q16); one moves to the nation that this cycle brings
    partsupp   offers of the parts that q2 and q20 look at change
    nation     one arrives and, a cycle later, leaves again; others are renamed

Only what nothing refers to is deleted: offers never ordered; from the second cycle on, parts and suppliers without
offers, and the nation of the cycle before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trickle.testing.tpch.data import TABLES
from trickle.testing.tpch.write import Change

if TYPE_CHECKING:
    from trickle.testing.tpch.draw import Draw

NATIONS: Final = 25
"""The standard's nations have the keys below this."""

NAMED_NATIONS: Final = (2, 3, 6, 7, 20)
"""BRAZIL, CANADA, FRANCE, GERMANY, SAUDI ARABIA: queries ask for them by name."""

NEW_SHARE: Final = 0.25
"""Inserted, and at most deleted, rows per updated row."""


def change_catalogue(draw: Draw) -> tuple[Change, ...]:
    """RF4: one change for each of part, supplier, partsupp and nation."""
    return tuple(
        Change(table, _first_of_each_key(table, changes))
        for table, changes in (
            ("part", _parts(draw)),
            ("supplier", _suppliers(draw)),
            ("partsupp", _offers(draw)),
            ("nation", _nations(draw)),
        )
    )


def _first_of_each_key(table: str, changes: tuple[str, ...]) -> str:
    """Unite changes of a table; where two of them draw the same row, the earlier one counts."""
    keys = ", ".join(TABLES[table])
    united = " UNION ALL ".join(f"SELECT {place} AS place, * FROM ({change})" for place, change in enumerate(changes))
    return (
        "SELECT * EXCEPT (place, position) FROM "
        f"(SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY place) AS position FROM ({united})) "
        "WHERE position = 1"
    )


def _parts(draw: Draw) -> tuple[str, ...]:
    aimed = """(VALUES
        (1, '', 'Brand#23', 'ECONOMY ANODIZED STEEL', 9, 'MED BOX'),
        (2, '', 'Brand#12', 'PROMO BURNISHED TIN', 3, 'SM CASE'),
        (3, '', 'Brand#34', 'STANDARD PLATED BRASS', 15, 'LG BOX'),
        (4, 'forest green plum linen ', 'Brand#45', 'MEDIUM POLISHED COPPER', 36, 'JUMBO JAR')
        ) AS aimed (place, prefix, brand, type, size, container)"""
    finish = "ANODIZED,BURNISHED,PLATED,POLISHED,BRUSHED"
    looks = f"""
        'Brand#' || {draw.one_of("1,2,3,4,5", "brand maker", "p_partkey")}
                 || {draw.one_of("1,2,3,4,5", "brand number", "p_partkey")} AS p_brand,
        {draw.one_of("STANDARD,SMALL,MEDIUM,LARGE,ECONOMY,PROMO", "part class", "p_partkey")}
            || ' ' || {draw.one_of(finish, "part finish", "p_partkey")}
            || ' ' || {draw.one_of("TIN,NICKEL,BRASS,STEEL,COPPER", "part metal", "p_partkey")} AS p_type,
        CAST(1 + {draw.below(50, "part size", "p_partkey")} AS int) AS p_size,
        {draw.one_of("SM,LG,MED,JUMBO,WRAP", "container size", "p_partkey")}
            || ' ' || {draw.one_of("CASE,BOX,BAG,JAR,PKG,PACK,CAN,DRUM", "container kind", "p_partkey")}
            AS p_container"""
    unsold = "p_partkey NOT IN (SELECT ps_partkey FROM partsupp)"
    return (
        f"""SELECT * EXCEPT (rank), 'delete' AS _op
            FROM ({draw.sample("part", _new(draw, "part"), "delete part", where=unsold)})""",
        f"""SELECT {draw.highest("part")} + rank AS p_partkey, p_name, p_mfgr, {looks}, p_retailprice, p_comment,
                   'insert' AS _op
            FROM ({_templates_of_new_parts(draw)})""",
        f"""SELECT p_partkey, prefix || p_name AS p_name, p_mfgr, brand, type, CAST(size AS int), container,
                   p_retailprice, p_comment, 'update' AS _op
            FROM ({draw.sample("part", 4, "aimed part")}) AS part JOIN {aimed} ON place = rank""",
        f"""SELECT p_partkey, p_name, p_mfgr, {looks}, p_retailprice, p_comment, 'update' AS _op
            FROM ({draw.sample("part", draw.rows("part", least=2), "update part")})""",
    )


def _suppliers(draw: Draw) -> tuple[str, ...]:
    nation = draw.below(NATIONS, "supplier nation", "s_suppkey")
    balance = f"CAST({draw.below(11_000, 'supplier balance', 's_suppkey')} - 1000 AS decimal(15, 2)) AS s_acctbal"
    next_nation = " ".join(
        f"WHEN {here} THEN {there}"
        for here, there in zip(NAMED_NATIONS, NAMED_NATIONS[1:] + NAMED_NATIONS[:1], strict=True)
    )
    idle = "s_suppkey NOT IN (SELECT ps_suppkey FROM partsupp)"
    first = draw.highest("supplier")
    return (
        f"""SELECT * EXCEPT (rank), 'delete' AS _op
            FROM ({draw.sample("supplier", _new(draw, "supplier"), "delete supplier", where=idle)})""",
        f"""SELECT s_suppkey, s_name, s_address, {nation} AS s_nationkey, s_phone, s_acctbal, s_comment,
                   'update' AS _op
            FROM supplier WHERE s_nationkey >= {NATIONS}""",
        f"""SELECT {first} + rank AS s_suppkey,
                   'Supplier#' || lpad(CAST({first} + rank AS varchar), 9, '0') AS s_name, s_address,
                   {nation} AS s_nationkey, s_phone, {balance}, s_comment, 'insert' AS _op
            FROM ({draw.sample("supplier", _new(draw, "supplier"), "insert supplier")})""",
        f"""SELECT s_suppkey, s_name, reverse(s_address) AS s_address,
                   CASE s_nationkey {next_nation} END AS s_nationkey, s_phone, s_acctbal, s_comment, 'update' AS _op
            FROM (SELECT *, row_number() OVER (
                      PARTITION BY s_nationkey ORDER BY {draw.number("move supplier", "s_suppkey")}) AS rank
                  FROM supplier WHERE s_nationkey IN {NAMED_NATIONS})
            WHERE rank = 1""",
        f"""SELECT s_suppkey, s_name, s_address,
                   CASE WHEN rank = 2 THEN {draw.highest("nation") + 1} ELSE {nation} END AS s_nationkey, s_phone,
                   {balance}, CASE WHEN rank = 1 THEN 'Customer after customer: Complaints' ELSE reverse(s_comment) END
                   AS s_comment, 'update' AS _op
            FROM ({draw.sample("supplier", draw.rows("supplier", least=2), "update supplier")})""",
    )


def _offers(draw: Draw) -> tuple[str, ...]:
    offer = ("ps_partkey", "ps_suppkey")
    quantity = f"CAST(1 + {draw.below(9999, 'offer quantity', *offer)} AS int) AS ps_availqty"
    cost = f"CAST(1 + {draw.below(1000, 'offer cost', *offer)} AS decimal(15, 2)) AS ps_supplycost"
    never_ordered = """NOT EXISTS (
        SELECT 1 FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey)"""
    looked_at = "(p_name LIKE 'forest%' OR (p_size = 15 AND p_type LIKE '%BRASS'))"
    first_part, first_supplier = draw.highest("part"), draw.highest("supplier")
    return (
        f"""SELECT * EXCEPT (rank), 'delete' AS _op
            FROM ({draw.sample("partsupp", _new(draw, "partsupp"), "delete offer", where=never_ordered)})""",
        # The first new part and the first new supplier stay without offers, for a later cycle to delete.
        f"""SELECT {first_part} + rank AS ps_partkey, ps_suppkey, {quantity}, {cost}, ps_comment, 'insert' AS _op
            FROM partsupp JOIN ({_templates_of_new_parts(draw)}) AS template ON ps_partkey = p_partkey
            WHERE rank > 1""",
        f"""SELECT {first_part + 2} AS ps_partkey, {first_supplier} + rank AS ps_suppkey, {quantity}, {cost},
                   ps_comment, 'insert' AS _op
            FROM ({draw.sample("partsupp", _new(draw, "supplier"), "offer of new supplier")})
            WHERE rank > 1""",
        f"""SELECT ps_partkey, ps_suppkey, CAST(1 + {draw.below(20, "few left", *offer)} AS int) AS ps_availqty, {cost},
                   ps_comment, 'update' AS _op
            FROM partsupp JOIN part ON p_partkey = ps_partkey
            WHERE {looked_at}
            ORDER BY {draw.number("aimed offer", *offer)}, ps_partkey, ps_suppkey LIMIT 8""",
        f"""SELECT ps_partkey, ps_suppkey, {quantity}, {cost}, ps_comment, 'update' AS _op
            FROM ({draw.sample("partsupp", draw.rows("partsupp", least=2), "update offer")})""",
    )


def _nations(draw: Draw) -> tuple[str, ...]:
    key = draw.highest("nation") + 1
    renamed = draw.mutation.renamed_nations
    return (
        f"SELECT *, 'delete' AS _op FROM nation WHERE n_nationkey >= {NATIONS}",
        f"""SELECT {key} AS n_nationkey, 'NATION {key}' AS n_name, {draw.cycle % 5} AS n_regionkey,
                   'new in cycle {draw.cycle}' AS n_comment, 'insert' AS _op""",
        f"""SELECT n_nationkey, CASE WHEN rank <= {renamed} THEN split_part(n_name, ' #', 1) || ' #{draw.cycle}'
                                     ELSE n_name END AS n_name,
                   n_regionkey, reverse(n_comment) AS n_comment, 'update' AS _op
            FROM (SELECT *, row_number() OVER (
                      ORDER BY {draw.number("rename nation", "n_nationkey")}) AS rank
                  FROM nation WHERE n_nationkey < {NATIONS} AND n_nationkey NOT IN {NAMED_NATIONS})
            WHERE rank <= {max(1, renamed)}""",
    )


def _templates_of_new_parts(draw: Draw) -> str:
    """Return a query: the parts that new parts and their offers are copied from."""
    sold = "p_partkey IN (SELECT ps_partkey FROM partsupp)"
    return draw.sample("part", _new(draw, "part"), "insert part", where=sold)


def _new(draw: Draw, table: str) -> int:
    return draw.rows(table, share=NEW_SHARE, least=2)
