"""An aggregate as a state that changes are added to, and how its values follow from the state.

    count(*), count(x)      number of rows (that have x)
    sum(x)                  sum of x, number of rows that have x; NULL if there are none
    avg(x)                  the same, divided as Spark divides
    min(x), max(x)          least, greatest value
    GROUP BY alone          number of rows

Sums of whole numbers and decimals are exact. One of doubles that is added to and taken from again drifts, so the magnitudes
that went into it are summed too: they tell how far. An aggregate with any other function is recomputed by key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trickle.algebra.aggregate_state import AggregateState, Term, TermKind
from trickle.algebra.expr import Call, Cast, Col, Column, Expr, Lit, Opaque, Output, new_column
from trickle.catalyst.jvm import items
from trickle.model.types import BIGINT, DECIMAL, TypeFacts, facts_of, mentions_collation

if TYPE_CHECKING:
    from trickle.catalyst.lift import Lift

_MAX_DIGITS: Final = 38
_DOUBLE: Final = new_column("double", "double")
_LONG: Final = new_column("bigint", "bigint")
_LONG_AS_DECIMAL: Final = new_column("long", "decimal(20,0)")
_LONG_SUM_DIGITS: Final = 30
"""Of a sum of such decimals, to Spark."""


def lift_state(lift: Lift, node: Any) -> AggregateState | None:
    """Return the form of a Catalyst aggregate as a state, None if some function or key has none."""
    parts = lift.jvm.singleton("org.apache.spark.sql.catalyst.planning.PhysicalAggregation").unapply(node)
    if parts.isEmpty():
        return None
    grouping, functions, results = parts.get()._1(), parts.get()._2(), parts.get()._3()
    state = _State(lift)
    named = [lift.output(g) for g in items(grouping)]
    if any(mentions_collation(o.column.type) or not o.column.orderable for o in named):
        return None
    values = []
    for function in items(functions):
        value = state.value(function)
        if value is None:
            return None
        values.append(Output(lift.column(function.resultAttribute()), value))
    keys = tuple(Output(state.column(f"k{i}", o.column.handle.dataType()), o.expr) for i, o in enumerate(named))
    handed_on = (Output(o.column, Col(k.column)) for o, k in zip(named, keys, strict=True))
    return AggregateState(keys, tuple(state.terms), (*handed_on, *values), lift.outputs(results))


class _State:
    """The columns of a state as functions ask for them."""

    def __init__(self, lift: Lift) -> None:
        self.lift = lift
        self.jvm = lift.jvm
        self._long = self.jvm.singleton("org.apache.spark.sql.types.LongType")
        self._counts: dict[str, Column] = {}
        self.terms: list[Term] = [Term(self.column("n", self._long))]

    def column(self, name: str, data_type: Any) -> Column:
        """Make a column of the state."""
        return self.lift.column(self.jvm.attribute(name, data_type))

    def value(self, expression: Any) -> Expr | None:
        """Return the value of an aggregate function over the state, adding the terms it needs; None if it has no sum."""
        if expression.isDistinct():
            return None
        function = expression.aggregateFunction()
        where = [expression.filter().get()] if expression.filter().isDefined() else []
        match self.jvm.name(function):
            case "Count":
                return Col(self._count(where, list(items(function.children()))))
            case "Sum":
                return self._sum(function, where)
            case "Average":
                return self._average(function, where)
            case "Min" | "Max" as name:
                kind: TermKind = "least" if name == "Min" else "greatest"
                return Col(self._add(self.lift.expr(function.child()), function.dataType(), where, kind))
        return None

    def _count(self, where: list[Any], present: list[Any]) -> Column:
        """Count the rows that pass and have all of some values."""
        conditions = [*where, *(self.jvm.call("isnotnull", [v]) for v in present if v.nullable())]
        if not conditions:
            return self.terms[0].column
        text = " AND ".join(str(c.canonicalized().toString()) for c in conditions)
        if text not in self._counts:
            column = self.column(f"n{len(self.terms)}", self._long)
            self._counts[text] = column
            self.terms.append(Term(column, None, tuple(self.lift.expr(c) for c in conditions)))
        return self._counts[text]

    def _add(
        self, value: Expr, data_type: Any, where: list[Any], kind: TermKind = "sum", bound: Column | None = None
    ) -> Column:
        column = self.column(f"s{len(self.terms)}", data_type)
        self.terms.append(Term(column, value, tuple(self.lift.expr(c) for c in where), kind, bound))
        return column

    def _add_doubles(self, function: Any, where: list[Any]) -> Column:
        double, value = self.jvm.singleton("org.apache.spark.sql.types.DoubleType"), self.lift.expr(function.child())
        bound = self._add(value, double, where, "magnitude")
        return self._add(value, double, where, "double", bound)

    def _sum(self, function: Any, where: list[Any]) -> Expr | None:
        result = function.dataType()
        if _facts(result).is_floating:
            column = self._add_doubles(function, where)
            total: Expr = Col(column)
        elif self._is_exact(function.evalContext().evalMode(), result):
            column = self._add_exact(function.child(), result, where)
            total = Col(column)
            if _facts(function.child().dataType()) is BIGINT:
                column = _LONG
                total = Cast(total, _LONG)
        else:
            return None
        count = self._count(where, [function.child()])
        return Call("if", (Call("=", (Col(count), Lit(0))), Lit(None, like=column), total))

    def _add_exact(self, value: Any, result: Any, where: list[Any]) -> Column:
        """Add a sum that is wider than its values: the least number of a type has no opposite in it to be taken back by.

        A change from one sum that fits to another may need a digit more than both.
        """
        facts, lifted = _facts(value.dataType()), self.lift.expr(value)
        if facts is BIGINT:
            wide = self.jvm.cls("org.apache.spark.sql.types.DecimalType")(_LONG_SUM_DIGITS, 0)
            return self._add(Cast(lifted, _LONG_AS_DECIMAL), wide, where)
        return self._add(Cast(lifted, _LONG), self._long, where) if facts.is_whole else self._add(lifted, result, where)

    def _average(self, function: Any, where: list[Any]) -> Expr | None:
        value = function.child()
        count = self._count(where, [value])
        facts = _facts(value.dataType())
        if facts.is_whole or facts.is_floating:
            # Spark sums whole numbers as doubles here, which is exact as long as the sum is: so is this.
            is_floating = facts.is_floating
            column = self._add_doubles(function, where) if is_floating else self._add_exact(value, self._long, where)
            quotient = Call("/", (Cast(Col(column), _DOUBLE), Cast(Col(count), _DOUBLE)))
            return Call("if", (Call("=", (Col(count), Lit(0))), Lit(None, like=_DOUBLE), quotient))
        buffer = list(items(function.aggBufferAttributes()))
        if facts is not DECIMAL or not self._is_exact(function.evalMode(), buffer[0].dataType()):
            return None
        column = self._add(self.lift.expr(value), buffer[0].dataType(), where)
        renaming = [(buffer[0], column.handle), (buffer[1], count.handle)]
        (final,) = self.jvm.rename([function.evaluateExpression()], renaming)
        lifted = self.lift.expr(final)
        return lifted if isinstance(lifted, Opaque) else None

    def _is_exact(self, mode: Any, data_type: Any) -> bool:
        """Return whether sums of this type neither round nor lose digits.

        A decimal of the greatest width may overflow: in ANSI mode that is an error, in others a NULL that later rows
        cannot take back.
        """
        on_overflow = str(mode.toString())
        if on_overflow == "TRY":
            return False
        facts = _facts(data_type)
        if facts is DECIMAL:
            return on_overflow == "ANSI" or int(data_type.precision()) < _MAX_DIGITS
        return facts is BIGINT


def _facts(data_type: Any) -> TypeFacts:
    return facts_of(str(data_type.catalogString()))
