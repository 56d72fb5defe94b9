"""Expressions evaluated over a row in Python; for ``trickle.testing.evaluate``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from trickle.algebra.expr import Call, Cast, Col, Column, Expr, Lit, Opaque

Env = dict[int, Any]
"""The values of a row, by the ids of its columns."""

SCALARS: Final[Mapping[str, Callable[..., Any]]] = {
    "=": lambda a, b: None if a is None or b is None else a == b,
    "<=>": lambda a, b: a == b,
    ">": lambda a, b: None if a is None or b is None else a > b,
    "<": lambda a, b: None if a is None or b is None else a < b,
    ">=": lambda a, b: None if a is None or b is None else a >= b,
    "<=": lambda a, b: None if a is None or b is None else a <= b,
    "and": lambda a, b: False if a is False or b is False else None if a is None or b is None else True,
    "or": lambda a, b: True if a is True or b is True else None if a is None or b is None else False,
    "!": lambda a: None if a is None else not a,
    "if": lambda a, b, c: b if a is True else c,
    "negative": lambda a: None if a is None else -a,
    "coalesce": lambda *values: next((v for v in values if v is not None), None),
    "isnotnull": lambda a: a is not None,
    "isnull": lambda a: a is None,
    "abs": lambda a: None if a is None else abs(a),
    "+": lambda a, b: None if a is None or b is None else a + b,
    "try_add": lambda a, b: None if a is None or b is None else a + b,
    "*": lambda a, b: None if a is None or b is None else a * b,
    "least": lambda *values: min((v for v in values if v is not None), default=None),
    "greatest": lambda *values: max((v for v in values if v is not None), default=None),
}
AGGREGATES: Final[Mapping[str, Callable[[list[Any]], Any]]] = {
    "count": len,
    "sum": lambda values: sum(values) if values else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
}


def value_of(expr: Expr, env: Env) -> Any:
    """Return the value of an expression over a row."""
    match expr:
        case Col(column):
            return env[column.id]
        case Lit(value):
            return value
        case Cast(Lit(str() as text), Column(type="double")):
            return float(text)
        case Cast(inner):
            return value_of(inner, env)
        case Call(name, args):
            return SCALARS[name](*(value_of(a, env) for a in args))
        case Opaque():
            message = f"{expr} can only be evaluated by Spark"
            raise TypeError(message)
