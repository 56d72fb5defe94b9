"""Random queries over every construct that the documentation lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from trickle.testing.fuzz.expressions import SOLID
from trickle.testing.fuzz.parts import Parts
from trickle.testing.fuzz.sql import APPROX, Expr, Item, Many, Relation, null
from trickle.testing.fuzz.tables import ARRAY, DECIMAL, MAP, PATHS, STRUCT, WIDE, Table

PICKS: Final = (
    "int",
    "string",
    DECIMAL,
    "date",
    "bigint",
    "double",
    "boolean",
    ARRAY,
    STRUCT,
    "timestamp",
    WIDE,
    "binary",
)


class Queries(Parts):
    """Draws queries over tables.

    Args:
        rng: Where chance comes from.
        tables: What may be read.
        leaves: How many tables a query may name, drawn from these; rows multiply with each.
    """

    def __init__(self, rng: Random, tables: tuple[Table, ...], leaves: tuple[int, ...] = (1, 2, 2, 3, 3, 4, 5)) -> None:
        """Start with nothing drawn."""
        super().__init__(rng)
        self.tables = tables
        self.leaves = leaves
        self.left = 0

    def draw(self, depth: int = 4) -> Relation:
        """Draw a query."""
        self.left = self.rng.choice(self.leaves)
        self.named = 0
        return self.relation(self.rng.randint(1, depth), is_top=True)

    def relation(self, depth: int, *, is_top: bool = False) -> Relation:
        """Draw a relation of at most a depth."""
        if depth <= 0 or (self.left <= 1 and not is_top and self.rng.random() < 0.5):
            return self.scan()
        ways = _WAYS if self.left > 1 else _UNARY
        way = self.rng.choices([w for w, _ in ways], weights=[n for _, n in ways])[0]
        return way(self, depth - 1)

    # -- leaves

    def scan(self) -> Relation:
        """Read a table."""
        self.left -= 1
        if self.rng.random() < 0.04:
            return self._values()
        table = self.rng.choice(self.tables)
        some = [c for c in table.columns if c[0] == "k" or self.rng.random() < 0.75]
        items = tuple(Item(self._name(), part) for name, type_ in some for part in self._read(name, type_))
        return Relation(f"SELECT {{items}} FROM {table.name}", items)

    def _read(self, name: str, type_: str) -> list[Expr]:
        """Read a column, or parts of it alone; maps cannot be compared, so they are not read whole."""
        column = Expr(type_, f"`{name}`")
        if type_ not in PATHS or (type_ != MAP and self.rng.random() < 0.4):
            return [column]
        parts = self.rng.sample(PATHS[type_], self.rng.choice((1, 1, 2)))
        return [Expr(of, path, (column,), "part of a nested column") for path, of in parts]

    def _values(self) -> Relation:
        name = f"v{self._number()}"
        items = (Item(self._name(), Expr("int", f"{name}.x")), Item(self._name(), Expr("string", f"{name}.y")))
        rows = "(0, 'a'), (1, 'b'), (1, 'b'), (CAST(NULL AS INT), 'c')"
        return Relation(f"SELECT {{items}} FROM VALUES {rows} AS {name}(x, y)", items, construct="VALUES")

    # -- one input

    def filter(self, depth: int) -> Relation:
        """Keep rows by a condition, with subqueries in it."""
        inner = self.relation(depth)
        condition = self.expressions.condition(inner.columns, self.rng.choice((1, 1, 2)), self._test_by_subquery(depth))
        return Relation("SELECT {items} FROM ({0}) WHERE {1}", self._same(inner), (inner, condition), "filter")

    def project(self, depth: int) -> Relation:
        """Compute columns."""
        inner = self.relation(depth)
        items = list(self._some(inner))
        for _ in range(self.rng.randint(1, 2)):
            type_ = self.rng.choice(PICKS)
            items.append(Item(self._name(), self.expressions.draw(inner.columns, type_, 3)))
        if self.left > 0 and self.rng.random() < 0.35:
            items.append(Item(self._name(), self._scalar(inner.columns, depth)))
        if self.left > 0 and self.rng.random() < 0.12 and (found := self._test_by_subquery(depth)(inner.columns)):
            items.append(Item(self._name(), Expr("boolean", "{0}", (found,), "subquery test in SELECT")))
        return Relation("SELECT {items} FROM ({0})", tuple(items), (inner,), "projection")

    def distinct(self, depth: int) -> Relation:
        """Drop duplicates."""
        inner = self.solid(depth)
        return Relation("SELECT DISTINCT {items} FROM ({0})", self._some(inner), (inner,), "DISTINCT")

    def aggregate(self, depth: int) -> Relation:
        """Group and aggregate."""
        inner = self.relation(depth)
        keys = self._keys(inner, self.rng.choice((0, 1, 1, 1, 2)))
        if keys and self.rng.random() < 0.2:
            keys = (self.expressions.draw(inner.columns, self.rng.choice(("int", "string", "date")), 2), *keys[1:])
        items = [Item(self._name(), key) for key in keys]
        items += [Item(self._name(), self._aggregate(inner.columns)) for _ in range(self.rng.randint(1, 3))]
        parts: tuple[Expr | Many | Relation, ...] = (inner,)
        template, construct = "SELECT {items} FROM ({0})", "aggregate without GROUP BY"
        if keys:
            template, construct, parts = template + " GROUP BY {1}", "GROUP BY", (inner, Many(keys))
        if self.rng.random() < 0.3:
            template += f" HAVING {{{len(parts)}}}"
            parts = (*parts, self._having(inner.columns))
        return Relation(template, tuple(items), parts, construct)

    def grouping_sets(self, depth: int) -> Relation:
        """Group several ways at once."""
        inner = self.solid(depth)
        keys = self._keys(inner, 2)
        if len(keys) < 2:
            return self.aggregate(depth)
        form, construct = self.rng.choice(
            (
                ("GROUPING SETS (({1}, {2}), ({1}), ())", "GROUPING SETS"),
                ("GROUPING SETS (({1}), ({2}))", "GROUPING SETS"),
                ("ROLLUP ({1}, {2})", "ROLLUP"),
                ("CUBE ({1}, {2})", "CUBE"),
            )
        )
        items = [Item(self._name(), key) for key in keys]
        items.append(Item(self._name(), Expr("bigint", "grouping_id()")))
        items.append(Item(self._name(), self._aggregate(inner.columns)))
        return Relation(f"SELECT {{items}} FROM ({{0}}) GROUP BY {form}", tuple(items), (inner, *keys), construct)

    def window(self, depth: int) -> Relation:
        """Compute over windows, also inside expressions."""
        inner = self.solid(depth)
        rows_over = self._partition(inner), self._order(inner)
        items = [*self._some(inner), Item(self._name(), self._window(inner, rows_over=rows_over))]
        if self.rng.random() < 0.4:
            items.append(Item(self._name(), self._window(inner, rows_over=rows_over)))
        if self.rng.random() < 0.4:
            over = self._window(inner, "int", rows_over)
            template = self.rng.choice(("{0} + 1", "CASE WHEN {0} = 1 THEN 7 ELSE {0} END", "coalesce({0}, -1)"))
            items.append(Item(self._name(), Expr("int", template, (over,), "window in an expression")))
        return Relation("SELECT {items} FROM ({0})", tuple(items), (inner,), "window")

    def ranked(self, depth: int) -> Relation:
        """Keep the first rows of each partition, as QUALIFY would."""
        inner = self.solid(depth)
        rank = self._name()
        function = self.rng.choice(("row_number()", "rank()", "dense_rank()"))
        over = Expr("int", f"{function} OVER ({{0}} ORDER BY {{1}})", (self._partition(inner), self._order(inner)))
        with_rank = Relation(
            "SELECT {items} FROM ({0})", (*self._same(inner), Item(rank, over)), (inner,), "top-N by rank"
        )
        return Relation(
            f"SELECT {{items}} FROM ({{0}}) WHERE {rank} <= {self.rng.randint(1, 3)}",
            self._some(with_rank),
            (with_rank,),
        )

    def top_k(self, depth: int) -> Relation:
        """Keep the first rows of an order."""
        inner = self.solid(depth)
        limit = self.rng.choice((" LIMIT 3", " LIMIT 7", " LIMIT 4 OFFSET 2", " OFFSET 3", " LIMIT 1"))
        construct = "OFFSET" if "OFFSET" in limit else "LIMIT"
        return Relation(
            f"SELECT {{items}} FROM ({{0}}) ORDER BY {{1}}{limit}",
            self._same(inner),
            (inner, self._order(inner)),
            construct,
        )

    def generate(self, depth: int) -> Relation:
        """Expand rows by a generator."""
        inner = self.relation(depth)
        array = self.expressions.draw(inner.columns, ARRAY, 2)
        at, value, alias = self._name(), self._name(), f"g{self._number()}"
        form, construct, has_position = self.rng.choice(
            (
                ("LATERAL VIEW explode({1}) {g} AS {v}", "LATERAL VIEW explode", False),
                ("LATERAL VIEW OUTER explode({1}) {g} AS {v}", "LATERAL VIEW OUTER explode", False),
                ("LATERAL VIEW posexplode({1}) {g} AS {p}, {v}", "LATERAL VIEW posexplode", True),
                (", LATERAL explode({1}) AS {g}({v})", "LATERAL explode", False),
                (" LEFT JOIN LATERAL posexplode({1}) AS {g}({p}, {v})", "LEFT JOIN LATERAL posexplode", True),
                ("LATERAL VIEW explode(sequence(1, {1})) {g} AS {v}", "LATERAL VIEW sequence", False),
                ("LATERAL VIEW stack(2, 1, 2) {g} AS {v}", "LATERAL VIEW stack", False),
            )
        )
        if "sequence" in form:
            array = Expr("int", "({0} % 3 + 3)", (self.expressions.draw(inner.columns, "int", 1),))
        form = form.replace("{g}", alias).replace("{v}", value).replace("{p}", at)
        items = [*self._some(inner), Item(self._name(), Expr("int", value))]
        if has_position:
            items.append(Item(self._name(), Expr("int", at)))
        return Relation(f"SELECT {{items}} FROM ({{0}}) {form}", tuple(items), (inner, array), construct)

    def generate_in_select(self, depth: int) -> Relation:
        """Expand rows by a generator in the SELECT list."""
        inner = self.relation(depth)
        function = self.rng.choice(("explode", "explode_outer"))
        items = (
            *self._some(inner),
            Item(self._name(), Expr("int", f"{function}({{0}})", (self.expressions.draw(inner.columns, ARRAY, 2),))),
        )
        return Relation("SELECT {items} FROM ({0})", items, (inner,), f"{function} in SELECT")

    def pivot(self, depth: int) -> Relation:
        """Turn rows into columns."""
        inner = self.solid(depth)
        by, key, value = (self._name() for _ in range(3))
        source = Relation(
            "SELECT {items} FROM ({0})",
            (
                Item(by, self.expressions.draw(inner.columns, self.rng.choice(("string", "date", "int")), 1)),
                Item(key, self.expressions.draw(inner.columns, "int", 1)),
                Item(value, self.expressions.draw(inner.columns, "int", 1)),
            ),
            (inner,),
        )
        items = (
            Item(self._name(), Expr(source.items[0].expr.type, by)),
            Item(self._name(), Expr("bigint", "one_s")),
            Item(self._name(), Expr("bigint", "two_n")),
        )
        pivot = f"PIVOT (sum({value}) AS s, count({value}) AS n FOR {key} IN (0 AS one, 1 AS two))"
        return Relation(f"SELECT {{items}} FROM ({{0}}) {pivot}", items, (source,), "PIVOT")

    def unpivot(self, depth: int) -> Relation:
        """Turn columns into rows."""
        inner = self.solid(depth)
        first, second, keep = self._name(), self._name(), self._name()
        source = Relation(
            "SELECT {items} FROM ({0})",
            (
                Item(keep, self.rng.choice(inner.columns)),
                Item(first, self.expressions.draw(inner.columns, "int", 1)),
                Item(second, self.expressions.draw(inner.columns, "int", 1)),
            ),
            (inner,),
        )
        name, value = f"n{self._number()}", f"u{self._number()}"
        items = (
            Item(self._name(), Expr(source.items[0].expr.type, keep)),
            Item(self._name(), Expr("string", name)),
            Item(self._name(), Expr("int", value)),
        )
        nulls = self.rng.choice(("", " INCLUDE NULLS"))
        unpivot = f"UNPIVOT{nulls} ({value} FOR {name} IN ({first}, {second}))"
        return Relation(f"SELECT {{items}} FROM ({{0}}) {unpivot}", items, (source,), "UNPIVOT")

    # -- several inputs

    def join(self, depth: int) -> Relation:
        """Join two relations."""
        left, right = self.relation(depth), self.relation(depth - 1)
        kind = self.rng.choice(("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"))  # fmt: skip  # noqa: E501
        on = self._meeting(left.columns, right.columns)
        if self.rng.random() < 0.2:
            extra = self.expressions.condition((*left.columns, *right.columns), 1)
            on = Expr("boolean", "({0} AND {1})", (on, extra))
        both = () if "SEMI" in kind or "ANTI" in kind else right.columns
        items = self._pick((*left.columns, *both))
        return Relation(f"SELECT {{items}} FROM ({{0}}) {kind} ({{1}}) ON {{2}}", items, (left, right, on), kind)

    def named_join(self, depth: int) -> Relation:
        """Join by columns of the same name."""
        left, right = self.relation(depth), self.relation(depth - 1)
        kind = self.rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        shared, a, b = self._name(), self._name(), self._name()
        type_ = self.rng.choice([t for t in ("int", "string", "date", "double") if any(c.type == t for c in left.columns)] or ["int"])  # fmt: skip  # noqa: E501
        sides = []
        for side, other in ((left, a), (right, b)):
            key = self.expressions.draw(side.columns, type_, 1 if any(c.type == type_ for c in side.columns) else 2)
            value = self.rng.choice(side.columns)
            sides.append(Relation("SELECT {items} FROM ({0})", (Item(shared, key), Item(other, value)), (side,)))
        names = (shared, type_), (a, sides[0].items[1].expr.type), (b, sides[1].items[1].expr.type)
        items = tuple(Item(self._name(), Expr(t, n)) for n, t in names)
        if self.rng.random() < 0.5:
            return Relation(
                f"SELECT {{items}} FROM ({{0}}) NATURAL {kind} ({{1}})", items, tuple(sides), f"NATURAL {kind}"
            )
        text = f"SELECT {{items}} FROM ({{0}}) {kind} ({{1}}) USING ({shared})"
        return Relation(text, items, tuple(sides), f"{kind} USING")

    def cross_join(self, depth: int) -> Relation:
        """Pair all rows of a relation with few others."""
        left, right = self.relation(depth), self.top_k(0)
        text = self.rng.choice(("CROSS JOIN", ","))
        items = self._pick((*left.columns, *right.columns))
        return Relation(f"SELECT {{items}} FROM ({{0}}) {text} ({{1}})", items, (left, right), "CROSS JOIN")

    def set_operation(self, depth: int) -> Relation:
        """Put two relations together, or take one from the other."""
        kind = self.rng.choice(
            ("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
        )
        left = self.relation(depth) if kind == "UNION ALL" else self.solid(depth)
        right = self.relation(depth - 1) if kind == "UNION ALL" else self.solid(depth - 1)
        wanted = self._pick(left.columns)[:4]
        if kind.startswith("INTERSECT"):
            # Rows of many columns hardly ever meet.
            shared = [c for c in left.columns if c.type in {other.type for other in right.columns}]
            wanted = self._pick(shared or left.columns)[:2]
        sides = [Relation("SELECT {items} FROM ({0})", wanted, (left,))]
        items = []
        for item in wanted:
            own = [c for c in right.columns if c.type == item.expr.type]
            known = item.expr.type in SOLID
            expr = self.rng.choice(own) if own else self.expressions.draw(right.columns, item.expr.type) if known else null(item.expr.type)  # fmt: skip  # noqa: E501
            items.append(Item(self._name(), expr))
        sides.append(Relation("SELECT {items} FROM ({0})", tuple(items), (right,)))
        given = tuple(Item(self._name(), column) for column in sides[0].columns)
        return Relation(f"SELECT {{items}} FROM (({{0}}) {kind} ({{1}}))", given, tuple(sides), kind)

    def lateral(self, depth: int) -> Relation:
        """Join a subquery that sees the row before it."""
        outer = self.relation(depth)
        inner, construct = self._correlated(outer.columns, depth - 1)
        how, after = self.rng.choice(
            ((", LATERAL", ""), ("LEFT JOIN LATERAL", " ON true"), ("JOIN LATERAL", " ON true"))
        )
        items = self._pick((*outer.columns, *inner.columns))
        text = f"SELECT {{items}} FROM ({{0}}) {how} ({{1}}){after}"
        name = f"{how.removeprefix(', ')}: {construct}"
        return Relation(text, items, (outer, inner), name)

    def _correlated(self, outer: Sequence[Expr], depth: int) -> tuple[Relation, str]:
        if self.rng.random() < 0.08:
            made = self.expressions.draw(outer, "int", 2)
            return Relation("SELECT {items}", (Item(self._name(), made),)), "no table"
        inner = self.solid(depth)
        meet = self._meeting(outer, inner.columns)
        kind = self.rng.choice(
            ("rows", "top", "aggregate", "aggregate", "group", "distinct", "union", "window", "nested")
        )
        same = self._same(inner)
        rows = Relation("SELECT {items} FROM ({0}) WHERE {1}", same, (inner, meet))
        if kind == "top":
            limit = self.rng.choice((" LIMIT 1", " LIMIT 2", " LIMIT 2 OFFSET 1"))
            text = f"SELECT {{items}} FROM ({{0}}) WHERE {{1}} ORDER BY {{2}}{limit}"
            return Relation(text, same, (inner, meet, self._order(inner))), "top-N"
        if kind in ("aggregate", "group"):
            items = [Item(self._name(), self._aggregate(inner.columns)) for _ in range(2)]
            keys = self._keys(inner, 1)
            if kind == "aggregate" or not keys:
                return Relation("SELECT {items} FROM ({0}) WHERE {1}", tuple(items), (inner, meet)), "aggregate"
            text = "SELECT {items} FROM ({0}) WHERE {1} GROUP BY {2}"
            return Relation(text, (Item(self._name(), keys[0]), *items), (inner, meet, keys[0])), "GROUP BY"
        if kind == "distinct":
            return Relation("SELECT DISTINCT {items} FROM ({0}) WHERE {1}", same, (inner, meet)), "DISTINCT"
        if kind == "window":
            more = (*same, Item(self._name(), self._window(inner)))
            return Relation("SELECT {items} FROM ({0}) WHERE {1}", more, (inner, meet)), "window"
        if kind == "union" and self.left > 0:
            other = self.scan()
            a = self.expressions.draw(other.columns, same[0].expr.type, 2) if same[0].expr.type in SOLID else null(same[0].expr.type)  # fmt: skip  # noqa: E501
            second = Relation(
                "SELECT {items} FROM ({0}) WHERE {1}",
                (Item(self._name(), a),),
                (other, self._meeting(outer, other.columns)),
            )
            first = Relation("SELECT {items} FROM ({0}) WHERE {1}", same[:1], (inner, meet))
            all_ = self.rng.choice((" ALL", ""))
            given = (Item(self._name(), first.columns[0]),)
            return Relation(
                f"SELECT {{items}} FROM (({{0}}) UNION{all_} ({{1}}))", given, (first, second)
            ), f"UNION{all_}"
        if kind == "nested" and self.left > 0:
            nested, _ = self._correlated((*outer, *inner.columns), 0)
            both = self._pick((*inner.columns, *nested.columns))
            text = "SELECT {items} FROM ({0}), LATERAL ({1}) WHERE {2}"
            return Relation(text, both, (inner, nested, meet)), "LATERAL inside"
        return rows, "rows"

    def cte(self, depth: int) -> Relation:
        """Name a relation and use it several times."""
        body = self.relation(depth)
        name = f"w{self._number()}"

        def use() -> Relation:
            items = tuple(Item(self._name(), c) for c in body.columns)
            return Relation(f"SELECT {{items}} FROM {name}", items)

        first, second = use(), use()
        if self.rng.random() < 0.5:
            on = self._meeting(first.columns, second.columns)
            kind = self.rng.choice(("JOIN", "LEFT JOIN", "LEFT ANTI JOIN"))
            columns = first.columns if "ANTI" in kind else (*first.columns, *second.columns)
            main = Relation(f"SELECT {{items}} FROM ({{0}}) {kind} ({{1}}) ON {{2}}", self._pick(columns), (first, second, on))  # fmt: skip  # noqa: E501
        else:
            kept = Relation(
                "SELECT {items} FROM ({0}) WHERE {1}",
                self._same(second),
                (second, self.expressions.condition(second.columns, 1)),
            )
            given = tuple(Item(self._name(), c) for c in first.columns)
            main = Relation("SELECT {items} FROM (({0}) UNION ALL ({1}))", given, (first, kept))
        given = tuple(Item(self._name(), c) for c in main.columns)
        return Relation(f"WITH {name} AS ({{0}}) SELECT {{items}} FROM ({{1}})", given, (body, main), "CTE used twice")

    def recursion(self, depth: int) -> Relation:
        """Follow edges from a start, three steps at most."""
        start, edges = self.relation(min(depth, 1)), self.relation(min(depth - 1, 1))
        number = self._number()
        node, step, name = f"n{number}", f"d{number}", f"r{number}"
        begin = self.expressions.draw(start.columns, "int", 1)
        source, goal = self.expressions.draw(edges.columns, "int", 1), self.expressions.draw(edges.columns, "int", 1)
        text = (
            f"WITH RECURSIVE {name}({node}, {step}) AS (SELECT {{1}}, 0 FROM ({{0}}) UNION ALL "
            f"SELECT {{4}}, {step} + 1 FROM ({{2}}) JOIN {name} ON {{3}} = {node} WHERE {step} < 2) "
            f"SELECT {{items}} FROM {name}"
        )
        items = (Item(self._name(), Expr("int", node)), Item(self._name(), Expr("int", step)))
        return Relation(text, items, (start, begin, edges, source, goal), "recursion")

    # -- subqueries

    def _test_by_subquery(self, depth: int) -> Callable[[Sequence[Expr]], Expr | None]:
        def draw(outer: Sequence[Expr]) -> Expr | None:
            if self.left <= 0:
                return None
            inner = self.solid(min(depth, 1))
            kind = self.rng.random()
            if kind < 0.4:
                word = self.rng.choice(("EXISTS", "EXISTS", "NOT EXISTS"))
                meet = self._meeting(outer, inner.columns)
                rows = Relation("SELECT {items} FROM ({0}) WHERE {1}", self._same(inner)[:1], (inner, meet))
                return Expr("boolean", f"({word} ({{0}}))", (rows,), word)
            pairs = [(o, c) for o in outer for c in inner.columns if o.type == c.type and o.type in SOLID]
            if not pairs:
                return None
            mine, column = self.rng.choice(pairs)
            if kind < 0.75:
                word = self.rng.choice(("IN", "IN", "NOT IN"))
                where = self.expressions.condition(inner.columns, 0)
                rows = Relation("SELECT {items} FROM ({0}) WHERE {1}", (Item(self._name(), column),), (inner, where))
                return Expr("boolean", f"({{0}} {word} ({{1}}))", (mine, rows), f"{word} subquery")
            function = self.rng.choice(("max", "min"))
            value = Expr(column.type, f"{function}({{0}})", (column,))
            if self.rng.random() < 0.5:
                meet = self._meeting(outer, inner.columns)
                rows = Relation("SELECT {items} FROM ({0}) WHERE {1}", (Item(self._name(), value),), (inner, meet))
                return Expr("boolean", "({0} >= ({1}))", (mine, rows), "correlated scalar subquery in WHERE")
            rows = Relation("SELECT {items} FROM ({0})", (Item(self._name(), value),), (inner,))
            return Expr("boolean", "({0} <= ({1}))", (mine, rows), "scalar subquery in WHERE")

        return draw

    def _scalar(self, outer: Sequence[Expr], depth: int) -> Expr:
        inner = self.solid(min(depth, 1))
        value = self._aggregate(inner.columns)
        if self.rng.random() < 0.7:
            meet = self._meeting(outer, inner.columns)
            rows = Relation("SELECT {items} FROM ({0}) WHERE {1}", (Item(self._name(), value),), (inner, meet))
            return Expr(value.type, "({0})", (rows,), "correlated scalar subquery")
        rows = Relation("SELECT {items} FROM ({0})", (Item(self._name(), value),), (inner,))
        return Expr(value.type, "({0})", (rows,), "scalar subquery")

    def solid(self, depth: int) -> Relation:
        """Draw a relation all of whose columns can be compared exactly."""
        inner = self.relation(depth)
        kept = tuple(Item(c.template, c) for c in inner.columns if c.type != APPROX)
        if len(kept) == len(inner.items):
            return inner
        return Relation("SELECT {items} FROM ({0})", kept or (Item(self._name(), Expr("int", "1")),), (inner,))


Way = Callable[[Queries, int], Relation]
_UNARY: Final[tuple[tuple[Way, float], ...]] = (
    (Queries.filter, 4),
    (Queries.project, 3),
    (Queries.distinct, 1.5),
    (Queries.aggregate, 5),
    (Queries.grouping_sets, 1.5),
    (Queries.window, 3),
    (Queries.ranked, 2),
    (Queries.top_k, 2),
    (Queries.generate, 1.5),
    (Queries.generate_in_select, 0.7),
    (Queries.pivot, 0.8),
    (Queries.unpivot, 0.7),
)
_WAYS: Final[tuple[tuple[Way, float], ...]] = (
    *_UNARY,
    (Queries.join, 7),
    (Queries.named_join, 2.5),
    (Queries.cross_join, 0.8),
    (Queries.set_operation, 3.5),
    (Queries.lateral, 4),
    (Queries.cte, 1.5),
    (Queries.recursion, 1),
)
