"""Random well-typed expressions. None of them fails on any value, and none has a value that Spark leaves open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from trickle.testing.fuzz.sql import APPROX, Expr, null
from trickle.testing.fuzz.tables import ARRAY, DECIMAL, STRUCT, WIDE

#: Types that a value can be compared by.
SOLID: Final = (
    "int",
    "bigint",
    "string",
    "double",
    DECIMAL,
    WIDE,
    "date",
    "timestamp",
    "boolean",
    ARRAY,
    STRUCT,
    "binary",
)

LITERALS: Final[dict[str, tuple[str, ...]]] = {
    "int": ("0", "1", "2", "3", "-1"),
    "bigint": ("0L", "2L", "5L", "9223372036854775807L"),
    "string": ("'a'", "'b'", "''", "'x\u2028y'", "'it\\'s'", "'A'"),
    "double": ("0.0D", "1.5D", "-0.0D", "double('NaN')", "0.1D"),
    DECIMAL: ("CAST(1.5 AS DECIMAL(12,2))", "CAST(0 AS DECIMAL(12,2))"),
    WIDE: ("CAST(1.5 AS DECIMAL(38,6))",),
    "date": ("DATE'2024-01-31'", "DATE'2024-02-29'", "DATE'9999-12-31'"),
    "timestamp": ("TIMESTAMP'2024-01-01 12:30:00'", "TIMESTAMP'1969-12-31 23:59:59'"),
    "boolean": ("true", "false"),
    ARRAY: ("array(1, 2)", "CAST(array() AS ARRAY<INT>)"),
    STRUCT: ("named_struct('a', 1, 'b', 'a')",),
    "binary": ("X'61'", "X''"),
    APPROX: ("0.5D",),
}

#: For each type how to make a value of it: a template, the types of its parts, the name it is counted by.
FUNCTIONS: Final[dict[str, tuple[tuple[str, tuple[str, ...], str], ...]]] = {
    "int": (
        ("try_add({0}, {1})", ("int", "int"), "try functions"),
        ("try_multiply({0}, {1})", ("int", "int"), "try functions"),
        ("({0} % 3)", ("int",), "arithmetic"),
        ("length({0})", ("string",), "string functions"),
        ("ascii({0})", ("string",), "string functions"),
        ("instr({0}, 'b')", ("string",), "string functions"),
        ("year({0})", ("date",), "date functions"),
        ("month({0})", ("timestamp",), "date functions"),
        ("dayofweek({0})", ("date",), "date functions"),
        ("datediff({0}, {1})", ("date", "date"), "date functions"),
        ("size({0})", (ARRAY,), "array functions"),
        ("try_element_at({0}, 1)", (ARRAY,), "array functions"),
        ("{0}.a", (STRUCT,), "struct field"),
        ("try_cast({0} AS INT)", ("string",), "casts"),
        ("try_cast({0} AS INT)", ("double",), "casts"),
        ("CAST({0} AS INT)", ("boolean",), "casts"),
        ("aggregate({0}, 0, (acc, x) -> (acc + coalesce(x, 0) % 100) % 1000)", (ARRAY,), "lambda functions"),
        ("greatest({0}, {1})", ("int", "int"), "greatest and least"),
    ),
    "bigint": (
        ("CAST({0} AS BIGINT)", ("int",), "casts"),
        ("(CAST({0} AS BIGINT) + CAST({1} AS BIGINT))", ("int", "int"), "arithmetic"),
        ("(CAST({0} AS BIGINT) * 3)", ("int",), "arithmetic"),
        ("try_subtract({0}, {1})", ("bigint", "bigint"), "try functions"),
        ("xxhash64({0})", ("string",), "hashes"),
        ("unix_micros({0})", ("timestamp",), "date functions"),
        ("least({0}, {1})", ("bigint", "bigint"), "greatest and least"),
    ),
    "string": (
        ("upper({0})", ("string",), "string functions"),
        ("concat({0}, '/', {1})", ("string", "string"), "string functions"),
        ("({0} || 'x')", ("string",), "string functions"),
        ("substring({0}, 1, 1)", ("string",), "string functions"),
        ("trim({0})", ("string",), "string functions"),
        ("replace({0}, 'a', 'é')", ("string",), "string functions"),
        ("reverse({0})", ("string",), "string functions"),
        ("concat_ws('-', {0}, {1})", ("string", "string"), "string functions"),
        ("regexp_replace({0}, '[ab]', '_')", ("string",), "string functions"),
        ("split_part({0}, 'b', 1)", ("string",), "string functions"),
        ("CAST({0} AS STRING)", ("int",), "casts"),
        ("CAST({0} AS STRING)", ("date",), "casts"),
        ("CAST({0} AS STRING)", (DECIMAL,), "casts"),
        ("date_format({0}, 'yyyy-MM')", ("date",), "date functions"),
        ("hex({0})", ("binary",), "string functions"),
        ("{0}.b", (STRUCT,), "struct field"),
        ("to_json({0})", (STRUCT,), "json"),
        ("get_json_object(to_json({0}), '$.b')", (STRUCT,), "json"),
        ("array_join({0}, ',', 'n')", (ARRAY,), "array functions"),
    ),
    "double": (
        ("CAST({0} AS DOUBLE)", ("int",), "casts"),
        ("abs({0})", ("double",), "arithmetic"),
        ("({0} + {1})", ("double", "double"), "arithmetic"),
        ("try_divide({0}, {1})", ("double", "double"), "try functions"),
        ("nanvl({0}, 0.0D)", ("double",), "nanvl"),
        ("round({0}, 1)", ("double",), "arithmetic"),
    ),
    DECIMAL: (
        ("CAST({0} % 1000 AS DECIMAL(12,2))", ("int",), "casts"),
        ("try_cast({0} * 2 AS DECIMAL(12,2))", (DECIMAL,), "arithmetic"),
        ("try_cast({0} + {1} AS DECIMAL(12,2))", (DECIMAL, DECIMAL), "arithmetic"),
        ("try_cast(try_divide({0}, {1}) AS DECIMAL(12,2))", (DECIMAL, DECIMAL), "try functions"),
        ("try_cast({0} AS DECIMAL(12,2))", ("string",), "casts"),
    ),
    WIDE: (
        ("CAST({0} AS DECIMAL(38,6))", (DECIMAL,), "casts"),
        ("CAST({0} AS DECIMAL(38,6))", ("bigint",), "casts"),
        ("try_cast({0} + {1} AS DECIMAL(38,6))", (WIDE, WIDE), "arithmetic"),
        ("(-{0})", (WIDE,), "arithmetic"),
    ),
    "date": (
        ("CAST({0} AS DATE)", ("timestamp",), "casts"),
        ("trunc({0}, 'MM')", ("date",), "date functions"),
        (
            "CASE WHEN {0} BETWEEN DATE'1900-01-01' AND DATE'2100-01-01' THEN date_add({0}, {1} % 40) END",
            ("date", "int"),
            "date functions",
        ),
        ("greatest({0}, {1})", ("date", "date"), "greatest and least"),
    ),
    "timestamp": (
        ("date_trunc('HOUR', {0})", ("timestamp",), "date functions"),
        ("date_trunc('MONTH', {0})", ("timestamp",), "date functions"),
        ("CAST({0} AS TIMESTAMP)", ("date",), "casts"),
    ),
    ARRAY: (
        ("array({0}, {1})", ("int", "int"), "array functions"),
        ("transform({0}, x -> x % 3)", (ARRAY,), "lambda functions"),
        ("filter({0}, x -> x > 1)", (ARRAY,), "lambda functions"),
        ("sort_array({0})", (ARRAY,), "array functions"),
        ("array_distinct({0})", (ARRAY,), "array functions"),
    ),
    STRUCT: (("named_struct('a', {0}, 'b', {1})", ("int", "string"), "struct made"),),
    "binary": (("encode({0}, 'UTF-8')", ("string",), "string functions"),),
    APPROX: (
        ("({0} + 1)", (APPROX,), "arithmetic"),
        ("abs({0})", (APPROX,), "arithmetic"),
    ),
}
#: Ways for every type.
FOR_ALL: Final = (
    ("coalesce({a}, {b})", "coalesce"),
    ("CASE WHEN {p} THEN {a} ELSE {b} END", "CASE"),
    ("CASE WHEN {p} THEN {a} END", "CASE"),
    ("if({p}, {a}, {b})", "if"),
    ("nullif({a}, {b})", "nullif"),
)

Subquery = Callable[[Sequence[Expr]], Expr | None]


class Expressions:
    """Draws expressions over given columns."""

    def __init__(self, rng: Random) -> None:
        """Draw by a generator of random numbers."""
        self.rng = rng

    def draw(self, columns: Sequence[Expr], type_: str, depth: int = 2) -> Expr:
        """Draw an expression of a type."""
        rng = self.rng
        if type_ == "boolean" and depth > 0 and rng.random() < 0.7:
            return self.condition(columns, depth - 1)
        own = [c for c in columns if c.type == type_]
        if own and (depth == 0 or rng.random() < 0.55):
            return rng.choice(own)
        if depth == 0 or rng.random() < 0.1:
            return self.literal(type_)
        if (own and rng.random() < 0.3) or type_ not in FUNCTIONS:
            return self._for_all(columns, type_, depth)
        # A function of constants alone would tell nothing.
        given = {c.type for c in columns}
        able = [f for f in FUNCTIONS[type_] if given.intersection(f[1])]
        if not able:
            return self.literal(type_)
        template, parts, construct = rng.choice(able)
        return Expr(type_, template, tuple(self.draw(columns, part, depth - 1) for part in parts), construct)

    def literal(self, type_: str) -> Expr:
        """Draw a constant."""
        if type_ not in LITERALS or self.rng.random() < 0.05:
            return null(type_)
        return Expr(type_, self.rng.choice(LITERALS[type_]))

    def _for_all(self, columns: Sequence[Expr], type_: str, depth: int) -> Expr:
        template, construct = self.rng.choice(FOR_ALL[:-1] if type_ == APPROX else FOR_ALL)
        a, b = self.draw(columns, type_, depth - 1), self.draw(columns, type_, depth - 1)
        parts: tuple[Expr, ...] = (a, b)
        if "{p}" in template:
            parts = (a, b, self.condition(columns, depth - 1))
        if "{b}" not in template:
            parts = (a, parts[2])
            return Expr(type_, "CASE WHEN {1} THEN {0} END", parts, construct)
        return Expr(type_, template.replace("{a}", "{0}").replace("{b}", "{1}").replace("{p}", "{2}"), parts, construct)

    def condition(self, columns: Sequence[Expr], depth: int = 1, subquery: Subquery | None = None) -> Expr:
        """Draw a condition; ``subquery`` may draw a test by a subquery for a place in it."""
        rng = self.rng
        if depth > 0 and rng.random() < (0.6 if subquery else 0.35):
            template, construct = rng.choice(
                (
                    ("({0} AND {1})", "AND"),
                    ("({0} OR {1})", "OR"),
                    ("({0} OR {1})", "OR"),
                    ("(NOT ({0} AND {1}))", "NOT AND"),
                    ("(NOT ({0} AND {1}))", "NOT AND"),
                    ("(NOT ({0} OR {1}))", "NOT OR"),
                )
            )
            parts = tuple(self.condition(columns, depth - 1, subquery) for _ in range(2))
            return Expr("boolean", template, parts, construct)
        if subquery is not None and rng.random() < 0.6 and (found := subquery(columns)) is not None:
            return found
        return self._test(columns, depth)

    def _test(self, columns: Sequence[Expr], depth: int) -> Expr:
        rng = self.rng
        own = [c for c in columns if c.type in SOLID]
        if not own:
            return Expr("boolean", "true")
        column = rng.choice(own)
        other = self.literal(column.type)
        if rng.random() < 0.4:
            # Compared with itself a column tells nothing.
            other = self.draw([c for c in columns if c != column], column.type, min(depth, 1))
        kind = rng.random()
        if kind < 0.3:
            return Expr("boolean", "({0} IS NOT NULL)" if rng.random() < 0.8 else "({0} IS NULL)", (column,), "IS NULL")
        if kind < 0.38:
            more = self.literal(column.type)
            return Expr("boolean", "({0} IN ({1}, {2}))", (column, other, more), "IN list")
        if kind < 0.43:
            return Expr("boolean", "({0} <=> {1})", (column, other), "null-safe comparison")
        if kind < 0.5 and column.type == "string":
            return Expr(
                "boolean", f"({{0}} {rng.choice(('LIKE', 'NOT LIKE'))} '%{rng.choice('ab')}%')", (column,), "LIKE"
            )
        if kind < 0.55 and column.type == "string":
            return Expr("boolean", "({0} RLIKE '^[a-c]')", (column,), "RLIKE")
        if kind < 0.6:
            low = Expr(column.type, LITERALS[column.type][0])
            return Expr("boolean", "({0} BETWEEN {1} AND {2})", (column, low, other), "BETWEEN")
        operator = rng.choice(("=", "<>", "<>", "<", "<=", ">", ">=", ">="))
        return Expr("boolean", f"({{0}} {operator} {{1}})", (column, other), "comparison")
