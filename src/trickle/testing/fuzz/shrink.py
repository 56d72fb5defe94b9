"""Makes a failing case small: fewer rounds, changes, tables, rows; a simpler query; all while it fails the same way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from trickle.testing.fuzz.expressions import LITERALS
from trickle.testing.fuzz.sql import (
    Expr,
    Item,
    Many,
    Part,
    Relation,
    inner_parts,
    names_in,
    null,
    render,
    walk,
    with_inner,
)

if TYPE_CHECKING:
    from trickle.testing.fuzz.case import Case, Failure
    from trickle.testing.fuzz.changes import Change, Round
    from trickle.testing.fuzz.run import Check
    from trickle.testing.fuzz.tables import Row


def shrink(failure: Failure, check: Check, seconds: float = 90.0) -> Failure:
    """Return the smallest case found in a time that fails in the same way."""
    until = time.monotonic() + seconds
    tried: set[str] = {repr(failure.case)}
    best = failure
    while time.monotonic() < until:
        for case in _smaller(best.case):
            if time.monotonic() > until:
                return best
            if (key := repr(case)) in tried:
                continue
            tried.add(key)
            found = check(case)
            if found is not None and found.kind == failure.kind:
                best = found
                break
        else:
            return best
    return best


def _smaller(case: Case) -> Iterator[Case]:
    """Return smaller cases, the much smaller ones first."""
    yield from _fewer_tables(case)
    yield from _fewer_rounds(case)
    view = case.views[0]
    if isinstance(view.query, Relation):
        for query in smaller_queries(view.query):
            yield replace(case, views=(replace(view, query=query),))
    yield from _fewer_changes(case)
    yield from _fewer_rows(case)
    yield from _plainer_tables(case)
    if view.regime != "default":
        yield replace(case, views=(replace(view, regime="default"),))


def _fewer_tables(case: Case) -> Iterator[Case]:
    used = tuple(table for table in case.tables if case.views[0].reads(table.name))
    if len(used) < len(case.tables):
        names = {table.name for table in used}
        rounds = tuple(tuple(c for c in round_ if c.table in names) for round_ in case.rounds)
        yield replace(case, tables=used, rounds=rounds)


def _fewer_rounds(case: Case) -> Iterator[Case]:
    rounds = case.rounds
    if len(rounds) > 1:
        merged: Round = tuple(change for round_ in rounds for change in round_)
        yield replace(case, rounds=(merged,))
        for n in range(len(rounds)):
            yield replace(case, rounds=(*rounds[:n], *rounds[n + 1 :]))


def _fewer_changes(case: Case) -> Iterator[Case]:
    for n, round_ in enumerate(case.rounds):
        for i, change in enumerate(round_):
            yield _with_change(case, n, i, None)
            for rows in _halves(change.rows):
                yield _with_change(case, n, i, replace(change, rows=rows))


def _with_change(case: Case, n: int, i: int, change: Change | None) -> Case:
    round_ = case.rounds[n]
    middle = () if change is None else (change,)
    return replace(case, rounds=(*case.rounds[:n], (*round_[:i], *middle, *round_[i + 1 :]), *case.rounds[n + 1 :]))


def _fewer_rows(case: Case) -> Iterator[Case]:
    for n, table in enumerate(case.tables):
        for rows in ((), *_halves(table.rows)) if table.rows else ():
            yield replace(case, tables=(*case.tables[:n], replace(table, rows=rows), *case.tables[n + 1 :]))


def _halves(rows: tuple[Row, ...]) -> Iterator[tuple[Row, ...]]:
    """Leave out a half, then each row."""
    if len(rows) < 2:
        return
    if len(rows) > 3:
        yield rows[: len(rows) // 2]
        yield rows[len(rows) // 2 :]
    for n in range(len(rows)):
        yield (*rows[:n], *rows[n + 1 :])


def _plainer_tables(case: Case) -> Iterator[Case]:
    for n, table in enumerate(case.tables):
        plainer = (
            replace(table, partition=None),
            replace(table, deletion_vectors=False),
            replace(table, change_feed=True),
        )
        for other in plainer:
            if other != table:
                yield replace(case, tables=(*case.tables[:n], other, *case.tables[n + 1 :]))
        sql = case.views[0].sql
        for at, (name, _) in enumerate(table.columns):
            if name in ("id", "k", table.partition) or f"`{name}`" in sql:
                continue
            rounds = tuple(
                tuple(_without_column(c, at) if c.table == table.name else c for c in round_) for round_ in case.rounds
            )
            rows = tuple((*row[:at], *row[at + 1 :]) for row in table.rows)
            slim = replace(table, columns=(*table.columns[:at], *table.columns[at + 1 :]), rows=rows)
            yield replace(case, tables=(*case.tables[:n], slim, *case.tables[n + 1 :]), rounds=rounds)


def _without_column(change: Change, at: int) -> Change:
    return replace(change, rows=tuple((*row[:at], *row[at + 1 :]) for row in change.rows))


# -- queries


def smaller_queries(query: Relation) -> Iterator[Relation]:
    """Return simpler queries; some of them may not be valid."""
    for simpler in _simpler(query, is_top=True):
        assert isinstance(simpler, Relation)
        yield _tidy(simpler)


def _simpler(part: Part, *, is_top: bool = False) -> Iterator[Part]:
    if isinstance(part, Relation):
        yield from _simpler_relation(part, is_top=is_top)
    elif isinstance(part, Many):
        if len(part.parts) > part.least:
            for n in range(len(part.parts)):
                yield replace(part, parts=(*part.parts[:n], *part.parts[n + 1 :]))
    elif part.type:
        yield from _simpler_expression(part)
    inner = inner_parts(part)
    for n, below in enumerate(inner):
        for simpler in _simpler(below):
            yield with_inner(part, (*inner[:n], simpler, *inner[n + 1 :]))


def _simpler_relation(part: Relation, *, is_top: bool) -> Iterator[Relation]:
    for below in part.parts:
        for found in walk(below):
            if isinstance(found, Relation):
                yield found if is_top else _in_place_of(part, found)
    if is_top and len(part.items) > 1:
        for n in range(len(part.items)):
            yield replace(part, items=(*part.items[:n], *part.items[n + 1 :]))


def _in_place_of(part: Relation, below: Relation) -> Relation:
    """Return a relation with the columns of one, taken from another as far as types agree."""
    items = []
    for item in part.items:
        same = [c for c in below.columns if c.type == item.expr.type]
        named = [c for c in same if c.template == item.name]
        items.append(Item(item.name, (named or same or [null(item.expr.type)])[0]))
    return Relation("SELECT {items} FROM ({0})", tuple(items), (below,))


def _simpler_expression(part: Expr) -> Iterator[Expr]:
    if not part.parts:
        return
    for below in part.parts:
        if isinstance(below, Expr) and below.type == part.type:
            yield below
    if part.type == "boolean":
        yield Expr("boolean", "true")
    if part.type in LITERALS:
        yield Expr(part.type, LITERALS[part.type][0])


def _tidy(query: Relation) -> Relation:
    """Drop columns that nothing reads, from the top down."""
    return _with_columns(query, None)


def _with_columns(part: Relation, wanted: set[str] | None) -> Relation:
    """Keep the wanted columns; None keeps all."""
    if wanted is not None and not part.template.startswith("SELECT DISTINCT"):
        kept = tuple(item for item in part.items if item.name in wanted)
        part = replace(part, items=kept or part.items[:1])
    by_position = any(word in part.template for word in ("UNION", "INTERSECT", "EXCEPT", "NATURAL"))
    own = names_in(render(replace(part, parts=tuple(map(_hollow, part.parts)))))
    inner: list[Part] = []
    for n, below in enumerate(part.parts):
        if isinstance(below, Relation):
            # A correlated relation reads columns of the one beside it.
            beside = (names_in(render(other)) for m, other in enumerate(part.parts) if m != n)
            inner.append(_with_columns(below, None if by_position else own.union(*beside)))
        else:
            inner.append(below)
    return replace(part, parts=tuple(inner))


def _hollow(part: Part) -> Part:
    """Return a stand-in for a relation in FROM, so that only what reads it is seen."""
    return Expr("", "hollow") if isinstance(part, Relation) else part
