"""Queries as trees: typed expressions and relations that know how to write themselves as SQL.

Column names are unique in a query, so no name needs a qualifier, and a part may be put in the place of another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

APPROX = "approx"
"""A double whose last digits depend on the order of rows: it may be shown, but not compared, grouped or ordered by."""


@dataclass(frozen=True, slots=True)
class Expr:
    """An expression: ``{0}``, ``{1}`` in the template stand for its parts."""

    type: str
    template: str
    parts: tuple[Part, ...] = ()
    construct: str = ""


@dataclass(frozen=True, slots=True)
class Many:
    """Expressions in a row, of which any may be left out as long as ``least`` remain."""

    parts: tuple[Expr, ...]
    separator: str = ", "
    least: int = 1


@dataclass(frozen=True, slots=True)
class Item:
    """A column that a relation gives: its name and what it is computed from."""

    name: str
    expr: Expr


@dataclass(frozen=True, slots=True)
class Relation:
    """A query: ``{items}`` in the template stands for its columns, ``{0}``, ``{1}`` for its parts."""

    template: str
    items: tuple[Item, ...]
    parts: tuple[Part, ...] = ()
    construct: str = ""

    @property
    def columns(self) -> tuple[Expr, ...]:
        """Return its columns as expressions over it."""
        return tuple(Expr(item.expr.type, item.name) for item in self.items)


Part = Expr | Many | Relation


def render(part: Part) -> str:
    """Write a part as SQL."""
    if isinstance(part, Many):
        return part.separator.join(map(render, part.parts))
    texts = [render(inner) for inner in part.parts]
    if isinstance(part, Expr):
        return part.template.format(*texts) if texts else part.template
    items = ", ".join(
        item.name if render(item.expr) == item.name else f"{render(item.expr)} AS {item.name}" for item in part.items
    )
    return part.template.format(*texts, items=items)


def inner_parts(part: Part) -> tuple[Part, ...]:
    """Return the parts just below, items included."""
    items = tuple(item.expr for item in part.items) if isinstance(part, Relation) else ()
    return (*items, *part.parts)


def with_inner(part: Part, inner: tuple[Part, ...]) -> Part:
    """Rebuild a part over other parts."""
    if not isinstance(part, Relation):
        return replace(part, parts=inner)  # type: ignore[arg-type]
    count = len(part.items)
    items = tuple(replace(item, expr=expr) for item, expr in zip(part.items, inner[:count], strict=True))  # type: ignore[arg-type]
    return replace(part, items=items, parts=inner[count:])


def walk(part: Part) -> Iterator[Part]:
    """Return a part and all below it."""
    yield part
    for inner in inner_parts(part):
        yield from walk(inner)


def constructs(part: Part) -> frozenset[str]:
    """Name the constructs that a query uses."""
    return frozenset(p.construct for p in walk(part) if not isinstance(p, Many) and p.construct)


def names_in(text: str) -> set[str]:
    """Return the column names that a text mentions."""
    return set(re.findall(r"\bc\d+\b", text))


def null(type_: str) -> Expr:
    """Return a NULL of a type."""
    return Expr(type_, f"CAST(NULL AS {sql_type(type_)})")


def sql_type(type_: str) -> str:
    """Return the type's name in SQL."""
    return "double" if type_ == APPROX else type_
