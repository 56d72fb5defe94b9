"""Parts of random queries that need no further relation: aggregates, windows, orders, keys, what relations meet by."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from trickle.testing.fuzz.expressions import SOLID, Expressions
from trickle.testing.fuzz.sql import APPROX, Expr, Item, Many, Relation
from trickle.testing.fuzz.tables import ARRAY, DECIMAL, WIDE

#: Aggregate functions: template, type of the argument, type of the result.
AGGREGATES: Final = (
    ("count(*)", None, "bigint", "count"),
    ("count({0})", "any", "bigint", "count"),
    ("count(DISTINCT {0})", "any", "bigint", "count distinct"),
    ("sum({0})", "int", "bigint", "sum"),
    ("sum({0})", DECIMAL, "decimal(22,2)", "sum of decimals"),
    ("sum(DISTINCT {0})", "int", "bigint", "sum distinct"),
    ("sum(CAST({0} AS DECIMAL(25,0)))", "bigint", "decimal(35,0)", "sum of decimals"),
    ("sum({0})", WIDE, WIDE, "sum of wide decimals"),
    ("sum({0})", "double", APPROX, "sum of doubles"),
    ("sum({0})", APPROX, APPROX, "sum of doubles"),
    ("avg({0})", "int", "double", "avg"),
    ("avg({0})", DECIMAL, "decimal(16,6)", "avg"),
    ("avg({0})", "double", APPROX, "avg of doubles"),
    ("avg(DISTINCT {0})", "int", "double", "avg distinct"),
    ("min({0})", "any", "same", "min"),
    ("max({0})", "any", "same", "max"),
    ("max({0})", APPROX, APPROX, "max"),
    ("stddev({0})", "int", APPROX, "stddev"),
    ("var_pop({0})", "int", APPROX, "stddev"),
    ("covar_pop({0}, {0})", "int", APPROX, "stddev"),
    ("count_if({0})", "boolean", "bigint", "count_if"),
    ("bool_or({0})", "boolean", "boolean", "bool_or"),
    ("every({0})", "boolean", "boolean", "every"),
    ("bit_xor({0})", "int", "int", "bit_xor"),
    ("bit_and({0})", "int", "int", "bit_and"),
    ("sort_array(collect_list({0}))", "int", ARRAY, "collect_list"),
    ("sort_array(collect_set({0}))", "int", ARRAY, "collect_set"),
    ("array_join(sort_array(collect_list({0})), '|')", "string", "string", "collect_list"),
    ("listagg({0}, ',') WITHIN GROUP (ORDER BY {0})", "string", "string", "listagg"),
    ("listagg(DISTINCT {0}, ',') WITHIN GROUP (ORDER BY {0})", "string", "string", "listagg distinct"),
    ("max_by({0}, struct({1}, {0}))", "pair", "same", "max_by"),
    ("min_by({0}, struct({1}, {0}))", "pair", "same", "min_by"),
    ("median({0})", "int", "double", "median"),
    ("percentile_cont(0.25) WITHIN GROUP (ORDER BY {0})", "int", "double", "percentile"),
    ("percentile_disc(0.5) WITHIN GROUP (ORDER BY {0})", "int", "double", "percentile"),
    ("mode() WITHIN GROUP (ORDER BY {0})", "int", "int", "mode"),
    ("approx_count_distinct({0})", "int", "bigint", "approx_count_distinct"),
)
#: Functions over windows whose order is complete: template, type of the argument, type of the result.
RANKED: Final = (
    ("row_number()", None, "int", "row_number"),
    ("rank()", None, "int", "rank"),
    ("dense_rank()", None, "int", "dense_rank"),
    ("percent_rank()", None, "double", "percent_rank"),
    ("cume_dist()", None, "double", "cume_dist"),
    ("ntile(3)", None, "int", "ntile"),
    ("lag({0})", "any", "same", "lag and lead"),
    ("lead({0}, 2)", "any", "same", "lag and lead"),
    ("lag({0}) IGNORE NULLS", "any", "same", "lag and lead IGNORE NULLS"),
)
#: Those of them that tell equal rows apart.
BY_ROW: Final = frozenset({"row_number", "ntile", "lag and lead", "lag and lead IGNORE NULLS"})
FRAMED: Final = (
    ("sum({0})", "int", "bigint", "running sum"),
    ("sum({0})", DECIMAL, "decimal(22,2)", "running sum"),
    ("sum({0})", "double", APPROX, "running sum of doubles"),
    ("count({0})", "any", "bigint", "running count"),
    ("min({0})", "any", "same", "running min"),
    ("max({0})", "any", "same", "running max"),
    ("avg({0})", "int", "double", "running avg"),
    ("first_value({0})", "any", "same", "first_value"),
    ("last_value({0})", "any", "same", "last_value"),
    ("nth_value({0}, 2)", "any", "same", "nth_value"),
    ("first_value({0}) IGNORE NULLS", "any", "same", "first_value"),
)
FRAMES: Final = (
    "",
    " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)


class Parts:
    """Draws parts of queries, and names for columns."""

    def __init__(self, rng: Random) -> None:
        """Start with nothing drawn."""
        self.rng = rng
        self.named = 0
        self.expressions = Expressions(rng)

    def _meeting(self, left: Sequence[Expr], right: Sequence[Expr]) -> Expr:
        """Draw what two relations meet by: mostly an equality."""
        pairs = [(a, b) for a in left for b in right if a.type == b.type and a.type in SOLID]
        ints = [(a, b) for a, b in pairs if a.type == "int"]
        if not pairs:
            a, b = (self.expressions.draw(side, "int", 2) for side in (left, right))
        else:
            a, b = self.rng.choice(ints if ints and self.rng.random() < 0.75 else pairs)
        operator = self.rng.choices(("=", "<=>", "<", ">="), weights=(8, 1, 0.5, 0.5))[0]
        construct = {"=": "met by equality", "<=>": "met null-safe"}.get(operator, "met by range")
        meet = Expr("boolean", f"({{0}} {operator} {{1}})", (a, b), construct)
        if len(pairs) > 1 and self.rng.random() < 0.1:
            meet = Expr("boolean", "({0} AND {1} = {2})", (meet, *self.rng.choice(pairs)), "met by two")
        return meet

    def _aggregate(self, columns: Sequence[Expr]) -> Expr:
        template, wanted, type_, construct = self.rng.choice(AGGREGATES)
        argument = self._argument(columns, wanted)
        if wanted == "pair":
            own = [c for c in columns if c.type in SOLID]
            argument = (self.rng.choice(own), self.rng.choice(own)) if own else (Expr("int", "1"), Expr("int", "2"))
        if type_ == "same":
            type_ = argument[0].type
        # Neither DISTINCT nor an order within the group goes with FILTER here, nor does a function around the aggregate.
        if self.rng.random() < 0.15 and not any(word in template for word in ("DISTINCT", "WITHIN", "sort_array")):
            where = self.expressions.condition(columns, 0)
            template += f" FILTER (WHERE {{{len(argument)}}})"
            return Expr(type_, template, (*argument, where), "FILTER")
        return Expr(type_, template, argument, construct)

    def _argument(self, columns: Sequence[Expr], wanted: str | None) -> tuple[Expr, ...]:
        if wanted is None or wanted == "pair":
            return ()
        if wanted == "any":
            own = [c for c in columns if c.type in SOLID]
            return (self.rng.choice(own),) if own else (Expr("int", "1"),)
        return (self.expressions.draw(columns, wanted, 1),)

    def _having(self, columns: Sequence[Expr]) -> Expr:
        template = self.rng.choice(("(count(*) > 1)", "(count(*) < 4)", "(max({0}) >= 1)", "(sum({0}) IS NOT NULL)"))
        parts = (self.expressions.draw(columns, "int", 1),) if "{0}" in template else ()
        return Expr("boolean", template, parts, "HAVING")

    def _window(self, inner: Relation, wanted: str | None = None, rows_over: tuple[Expr, Many] | None = None) -> Expr:
        """Draw a function over a window.

        Functions that tell equal rows apart are given one window for all of them, ``rows_over``: with two, Spark may
        number equal rows in two ways, and which value meets which is open.
        """
        functions = [f for f in (*RANKED, *FRAMED) if wanted is None or f[2] == wanted]
        function = self.rng.choice(functions)
        template, argument_type, type_, construct = function
        argument = self._argument(inner.columns, argument_type)
        if type_ == "same":
            type_ = argument[0].type
        frame = self.rng.choice(FRAMES) if function in FRAMED else ""
        count = len(argument)
        text = f"{template} OVER ({{{count}}} ORDER BY {{{count + 1}}}{frame})"
        over = self._partition(inner), self._order(inner)
        if rows_over is not None and (construct in BY_ROW or "ROWS" in frame):
            over = rows_over
        return Expr(type_, text, (*argument, *over), construct)

    def _partition(self, inner: Relation) -> Expr:
        if self.rng.random() < 0.2:
            return Expr("", "")
        key = self._keys(inner, 1)
        return Expr("", "PARTITION BY {0}", key) if key else Expr("", "")

    def _order(self, inner: Relation) -> Many:
        """Order by all columns, so that only equal rows are tied."""
        columns = list(inner.columns)
        self.rng.shuffle(columns)
        ways = ("", "", " DESC", " NULLS LAST", " DESC NULLS FIRST")
        return Many(tuple(Expr(c.type, f"{{0}}{self.rng.choice(ways)}", (c,)) for c in columns), least=len(columns))

    def _keys(self, inner: Relation, count: int) -> tuple[Expr, ...]:
        able = [c for c in inner.columns if c.type != APPROX]
        handy = [c for c in able if c.type in ("int", "string", "date", "boolean", DECIMAL)]
        pool = handy if len(handy) >= count and self.rng.random() < 0.8 else able
        return tuple(self.rng.sample(pool, min(count, len(pool))))

    def _same(self, inner: Relation) -> tuple[Item, ...]:
        return tuple(Item(c.template, c) for c in inner.columns)

    def _some(self, inner: Relation) -> tuple[Item, ...]:
        return self._pick(inner.columns, rename=False)

    def _pick(self, columns: Sequence[Expr], *, rename: bool = True) -> tuple[Item, ...]:
        kept = [c for c in columns if self.rng.random() < 0.7][:7] or [self.rng.choice(columns)]
        return tuple(Item(self._name() if rename else c.template, c) for c in kept)

    def _number(self) -> int:
        self.named += 1
        return self.named

    def _name(self) -> str:
        return f"c{self._number()}"
