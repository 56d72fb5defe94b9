"""The Catalyst half of driver-side execution: expressions that mean the same outside of Spark.

Such are comparisons of plain columns and constants, and sums of decimals.
``driver_form`` gives a Catalyst expression in the engine's own, or None where Spark alone knows what it means (most
functions, casts, collations, floating point, time zones). ``compute/driver`` evaluates it.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from trickle.algebra.expr import Call, Cast, Col, Column, Expr, Lit
from trickle.catalyst.jvm import items
from trickle.catalyst.opaque import opaque
from trickle.model.types import BOOLEAN, DATE, DECIMAL, STRING, TypeFacts, decimal_digits, facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trickle.catalyst.jvm import Jvm

_LOGIC: Final[Mapping[str, str]] = {"And": "and", "Or": "or", "Not": "!"}
_COMPARISONS: Final[Mapping[str, str]] = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_TEXT: Final[Mapping[str, str]] = {"StartsWith": "startswith", "EndsWith": "endswith", "Contains": "contains"}
_RANKS: Final[Mapping[str, str]] = {"RowNumber": "row_number", "Rank": "rank", "DenseRank": "dense_rank"}
"""Functions that look at their window's partition and order, and at nothing else."""
_NULLS: Final[Mapping[str, str]] = {"IsNotNull": "isnotnull", "IsNull": "isnull"}
_EPOCH: Final = date(1970, 1, 1)


class _NotSimpleError(Exception):
    """Only Spark can tell what this means."""


def driver_form(jvm: Jvm, expr: Any) -> Expr | None:
    """Return an expression in the engine's own, None if it has no such form."""
    try:
        if jvm.name(expr) == "SortOrder":
            return _order(jvm, expr)
        is_condition = _facts(expr) is BOOLEAN
        return _condition(jvm, expr) if is_condition else _number(jvm, expr)
    except (_NotSimpleError, OverflowError):  # a date after the year 9999, for one
        return None


def _type(expr: Any) -> str:
    return str(expr.dataType().catalogString())


def _facts(expr: Any) -> TypeFacts:
    return facts_of(_type(expr))


def _condition(jvm: Jvm, expr: Any) -> Expr:
    name = jvm.name(expr)
    if name in _LOGIC:
        return Call(_LOGIC[name], tuple(_condition(jvm, c) for c in items(expr.children())))
    if name in _NULLS:
        (child,) = items(expr.children())
        is_column = jvm.name(child) == "AttributeReference"
        return Call(_NULLS[name], (_column(jvm, child) if is_column else _number(jvm, child),))
    if name in _COMPARISONS:
        left, right = (_value(jvm, c) for c in items(expr.children()))
        return Call(_COMPARISONS[name], (left, right))
    if name in _TEXT:
        left, right = (_value(jvm, c) for c in items(expr.children()))
        return Call(_TEXT[name], (left, right))
    if name in ("In", "InSet"):
        (value, *_) = items(expr.children())
        tested, type_ = _value(jvm, value), _type(value)
        if name == "In":
            wanted = tuple(_literal(jvm, one) for one in items(expr.list()))
        else:
            wanted = tuple(_constant(one, type_) for one in items(expr.hset().toSeq()))
        return Call("in", (tested, *wanted))
    if name == "Like":
        column, pattern = _value(jvm, expr.left()), _literal(jvm, expr.right())
        if str(expr.escapeChar()) != "\\" or "\\" in str(pattern.value):
            raise _NotSimpleError
        parts = (".*" if c == "%" else "." if c == "_" else re.escape(c) for c in str(pattern.value))
        return Call("rlike", (column, Lit(f"(?s)^(?:{''.join(parts)})$")))
    if name in ("If", "CaseWhen"):
        return _choice(jvm, expr, list(items(expr.children())))
    if name == "AttributeReference" and _facts(expr) is BOOLEAN:
        return _column(jvm, expr)
    if name == "Literal" and _facts(expr) is BOOLEAN:
        value = expr.value()
        return Lit(None, Column(0, "", BOOLEAN.name)) if value is None else Lit(bool(value))
    raise _NotSimpleError


def _number(jvm: Jvm, expr: Any) -> Expr:
    """Return a value made of decimals, or one of the few functions that groups are made by."""
    name = jvm.name(expr)
    if name in ("AttributeReference", "Literal"):
        is_null = name == "Literal" and expr.value() is None
        return Lit(None, Column(0, "", _type(expr))) if is_null else _value(jvm, expr)
    if name == "AggregateExpression":
        return _aggregate(jvm, expr)
    if name == "WindowExpression" and jvm.name(expr.windowFunction()) in _RANKS:
        return Call(_RANKS[jvm.name(expr.windowFunction())], ())
    if name == "DecimalDivideWithOverflowCheck":
        parts = (_number(jvm, expr.left()), _number(jvm, expr.right()))
        return Cast(Call("/", parts), Column(0, "", _type(expr)))
    if name == "Divide" and _facts(expr) is DECIMAL:
        dividend, divisor = _number(jvm, expr.left()), _number(jvm, expr.right())
        if expr.failOnError():
            divisor = Call("nonzero", (divisor,))
        return Cast(Call("/", (dividend, divisor)), Column(0, "", _type(expr)))
    if name in ("UnaryMinus", "Remainder", *_ARITHMETIC) and _facts(expr).is_whole:
        # A result that does not fit is found out when it is computed, and left to Spark.
        operator = _ARITHMETIC.get(name) or _WHOLE[name]
        return Call(operator, tuple(_number(jvm, child) for child in items(expr.children())))
    if name in _ARITHMETIC:
        left, right = items(expr.children())
        made = Call(_ARITHMETIC[name], (_number(jvm, left), _number(jvm, right)))
        exact, given = _ARITHMETIC_DIGITS[name](_digits(left), _digits(right)), _digits(expr)
        if given == exact:
            return made
        if given[1] != exact[1]:
            raise _NotSimpleError
        return Cast(made, Column(0, "", _type(expr)))
    if name == "Cast":
        # A value that does not fit is found out when it is cast, and left to Spark.
        is_whole = _facts(expr.child()).is_whole and _facts(expr).is_whole
        if not is_whole and (_facts(expr) is not DECIMAL or not _digits(expr.child())):
            raise _NotSimpleError
        return Cast(_number(jvm, expr.child()), Column(0, "", _type(expr)))
    if name in ("If", "CaseWhen"):
        return _choice(jvm, expr, list(items(expr.children())))
    if name == "Year" and _facts(expr.child()) is DATE:
        return Call("year", (_column(jvm, expr.child()),))
    if name == "Substring":
        text, start, length = (_value(jvm, c) for c in items(expr.children()))
        is_text = isinstance(text, Col) and facts_of(text.column.type) is STRING
        if not (is_text and _is_from(start, 1) and _is_from(length, 0)):
            raise _NotSimpleError
        return Call("substring", (text, start, length))
    raise _NotSimpleError


def _aggregate(jvm: Jvm, expr: Any) -> Expr:
    """Return an aggregate function: counts, exact sums and averages, minima and maxima."""
    function, filter_ = expr.aggregateFunction(), expr.filter()
    where = _part(jvm, filter_.get(), _condition) if filter_.isDefined() else None
    children, distinct = list(items(function.children())), bool(expr.isDistinct())
    name, type_ = jvm.name(function), Column(0, "", _type(function))
    if len(children) != 1 or (distinct and name != "Count"):
        raise _NotSimpleError
    if name == "Count":
        # Of a constant only its being there counts.
        is_constant = jvm.name(children[0]) == "Literal" and children[0].value() is not None
        return Call("count", (Lit(1) if is_constant else _part(jvm, children[0], _number),), distinct, where)
    value = _part(jvm, children[0], _number)
    if name in ("Min", "Max"):
        return Call(name.lower(), (value,), where=where)
    if name == "Sum" and str(function.evalContext().evalMode().toString()) != "TRY":
        return Cast(Call("sum", (value,), where=where), type_)
    if name == "Average" and str(function.evalMode().toString()) != "TRY":
        if _facts(children[0]).is_whole:
            return Call("avg", (value,), where=where)
        total, count = Call("sum", (value,), where=where), Call("count", (value,), where=where)
        return Cast(Call("/", (total, Cast(count, Column(0, "", "decimal(20,0)")))), type_)
    raise _NotSimpleError


def _part(jvm: Jvm, expr: Any, form: Callable[[Jvm, Any], Expr]) -> Expr:
    """Return what an aggregate function is computed of; if it has no form here, as Spark's own expression."""
    try:
        return form(jvm, expr)
    except _NotSimpleError:
        return opaque(expr)


def _order(jvm: Jvm, expr: Any) -> Expr:
    """Return one part of an ORDER BY: the value, whether it descends, whether NULLs are last."""
    descending = jvm.name(expr.direction()) == "Descending$"
    nulls_last = jvm.name(expr.nullOrdering()) == "NullsLast$"
    return Call("order", (_column(jvm, expr.child()), Lit(descending), Lit(nulls_last)))


def _choice(jvm: Jvm, expr: Any, parts: list[Any]) -> Expr:
    """Return CASE WHEN a THEN b WHEN c THEN d ELSE e END as choices between two."""
    type_ = Column(0, "", _type(expr))
    facts = facts_of(type_.type)
    if facts is not BOOLEAN and not facts.is_summed:
        raise _NotSimpleError
    form = _condition if facts is BOOLEAN else _number
    otherwise: Expr = Lit(None, type_) if len(parts) % 2 == 0 else form(jvm, parts[-1])
    for at in range(len(parts) - len(parts) % 2 - 2, -1, -2):
        otherwise = Call("if", (_condition(jvm, parts[at]), form(jvm, parts[at + 1]), otherwise))
    return otherwise


def _is_from(expr: Expr, least: int) -> bool:
    return isinstance(expr, Lit) and isinstance(expr.value, int) and expr.value >= least


def _digits(expr: Any) -> tuple[int, int]:
    """Return precision and scale of a number."""
    type_ = _type(expr)
    if facts_of(type_).is_whole:
        return facts_of(type_).digits, 0
    digits = decimal_digits(type_)
    if digits is None:
        raise _NotSimpleError
    return digits


def _digits_of_sum(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    scale = max(left[1], right[1])
    return max(left[0] - left[1], right[0] - right[1]) + scale + 1, scale


def _digits_of_product(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    return left[0] + right[0] + 1, left[1] + right[1]


_ARITHMETIC: Final[Mapping[str, str]] = {"Add": "+", "Subtract": "-", "Multiply": "*"}
_WHOLE: Final[Mapping[str, str]] = {"UnaryMinus": "negative", "Remainder": "%"}
_ARITHMETIC_DIGITS: Final[Mapping[str, Any]] = {
    "Add": _digits_of_sum,
    "Subtract": _digits_of_sum,
    "Multiply": _digits_of_product,
}
"""What an exact result needs; Spark has no more than 38 digits, and rounds if it must."""


def _value(jvm: Jvm, expr: Any) -> Expr:
    """Return a value that can be compared."""
    if not _facts(expr).is_compared:
        raise _NotSimpleError
    match jvm.name(expr):
        case "Literal":
            return _literal(jvm, expr)
        case "AttributeReference":
            return _column(jvm, expr)
    return _number(jvm, expr)


def _column(jvm: Jvm, expr: Any) -> Expr:
    if jvm.name(expr) != "AttributeReference":
        raise _NotSimpleError
    return Col(Column(int(expr.exprId().id()), expr.name(), _type(expr)))


def _literal(jvm: Jvm, expr: Any) -> Lit:
    if jvm.name(expr) != "Literal":
        raise _NotSimpleError
    return _constant(expr.value(), _type(expr))


def _constant(value: Any, type_: str) -> Lit:
    if value is None:
        raise _NotSimpleError
    facts = facts_of(type_)
    if facts.is_whole:
        return Lit(int(value), Column(0, "", type_))
    if facts is STRING:
        return Lit(str(value.toString()))
    if facts is DATE:
        return Lit(_EPOCH + timedelta(days=int(value)))
    if facts is DECIMAL:
        return Lit(Decimal(str(value.toString())), Column(0, "", type_))
    raise _NotSimpleError
