"""Rounds of changes to fixture tables: generated from their names alone, or written by hand.

A round is one or more commits; a refresh follows it. An update is a delete and an insert in one commit. The generated
rounds are, in order (for one table, the rounds about "the others" fall away):

    rows arrive            inserts in every table, with a NULL key, and a copy of a row that is there
    the first alone        delete, one of two equal rows, update of a value, update of a key
    the others alone       the same in every other table: the inner tables alone
    nothing in the end     several commits that cancel: insert then delete, delete then insert
    partners go together   the first row of every table goes, keys and values change on every side at once
    the last is emptied    and the first gets a row
    refilled               the last is filled again, and of several tables the first is emptied
    all refilled           the first too
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random
from typing import TYPE_CHECKING

from .tables import TABLES, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@dataclass(frozen=True)
class Change:
    """Rows that go from a table and rows that come, in one commit."""

    deletes: tuple[Row, ...] = ()
    inserts: tuple[Row, ...] = ()


Commit = dict[str, Change]


@dataclass(frozen=True)
class Round:
    """Commits between two refreshes.

    Attributes:
        statements: SQL run before the refresh (a view replaced, for example).
        mode: What the refresh must report.
        fails: Code of the error the refresh must raise, leaving the table as it was; the next round must work again.
    """

    title: str
    commits: tuple[Commit, ...] = ()
    statements: tuple[str, ...] = ()
    mode: str = "differential"
    fails: str | None = None


def step(title: str, **changes: tuple[Iterable[Row], Iterable[Row]]) -> Round:
    """Build a round of one commit: ``step("bo leaves", emp=([old], []))``."""
    commit = {name: Change(tuple(gone), tuple(come)) for name, (gone, come) in changes.items()}
    return Round(title, (commit,))


def in_pairs(rounds: Iterable[Round]) -> Iterator[Round]:
    """Return rounds two at a time, as several commits between refreshes; what must be seen alone stays alone."""
    waiting: Round | None = None
    for one in rounds:
        is_plain = one.mode == "differential" and not one.statements and one.fails is None
        if waiting is not None and is_plain:
            yield Round(f"{waiting.title}, {one.title}", (*waiting.commits, *one.commits))
            waiting = None
            continue
        if waiting is not None:
            yield waiting
        waiting = one if is_plain else None
        if not is_plain:
            yield one
    if waiting is not None:
        yield waiting


def apply(state: dict[str, list[Row]], commit: Mapping[str, Change]) -> None:
    """Change table contents in place by one commit."""
    for name, change in commit.items():
        for row in change.deletes:
            state[name].remove(row)
        state[name].extend(change.inserts)


def initial_state(tables: Iterable[str]) -> dict[str, list[Row]]:
    """Return the contents of tables at version 0."""
    return {name: list(TABLES[name].rows) for name in tables}


def states(tables: Iterable[str], rounds: Iterable[Round]) -> Iterator[tuple[Round, dict[str, list[Row]]]]:
    """Return each round with the contents of the tables after it."""
    state = initial_state(tables)
    for round_ in rounds:
        for commit in round_.commits:
            apply(state, commit)
        yield round_, {name: list(rows) for name, rows in state.items()}


@cache
def generate(tables: tuple[str, ...]) -> tuple[Round, ...]:
    """Return the rounds for these tables; equal names always get equal rounds."""
    return _Writer(tables).write()


class _Writer:
    """Writes rounds while keeping the contents they lead to, so that deletes always name rows that are there."""

    def __init__(self, tables: tuple[str, ...]) -> None:
        self.tables = tuple(TABLES[name] for name in tables)
        self.rng = Random(" ".join(tables))
        self.state = initial_state(tables)
        self.number = 100
        self.done: list[Round] = []

    def write(self) -> tuple[Round, ...]:
        first, others = self.tables[0], self.tables[1:]
        self.add("rows arrive", {t.name: Change(inserts=self.arrivals(t)) for t in self.tables})
        self.add("the first alone", {first.name: self.mix(first)})
        if others:
            self.add("the others alone", {t.name: self.mix(t) for t in others})
        self.add("nothing in the end", *self.cancelling())
        self.add("partners go together", {t.name: self.partner_goes(t) for t in self.tables})
        self.add_emptying()
        return tuple(self.done)

    def add(self, title: str, *commits: Commit) -> None:
        for commit in commits:
            apply(self.state, commit)
        self.done.append(Round(title, commits))

    def add_emptying(self) -> None:
        first, last = self.tables[0], self.tables[-1]
        emptied = {last.name: Change(deletes=tuple(self.state[last.name]))}
        if first is not last:
            emptied[first.name] = Change(inserts=(self.fresh(first),))
        self.add("the last is emptied", emptied)
        refilled = {last.name: Change(inserts=(*last.rows, self.fresh(last), self.fresh(last)))}
        if first is not last:
            refilled[first.name] = Change(deletes=tuple(self.state[first.name]))
        self.add("refilled", refilled)
        if first is not last:
            back = {t.name: self.mix(t) for t in self.tables[1:]}
            back[first.name] = Change(inserts=(*first.rows, self.fresh(first)))
            self.add("all refilled", back)

    def arrivals(self, table: Table) -> tuple[Row, ...]:
        without_key = self.edit(table, self.fresh(table), {table.keys[0]: None})
        rows = [self.fresh(table), self.fresh(table), without_key]
        if not table.unique:
            rows += [self.state[table.name][1], rows[0]]
        return tuple(rows)

    def mix(self, table: Table) -> Change:
        """Delete a row (one of two equal ones if there are such), insert one, change a value and a key."""
        rows = self.state[table.name]
        equal = [row for i, row in enumerate(rows) if row in rows[:i]]
        going = equal[0] if equal else self.pick(rows, 1)
        others = [row for row in rows if row != going]
        by_value, by_key = self.pick(others, 2), self.pick(others, 4)
        changed = [(by_value, table.values)]
        if by_key != by_value:
            changed.append((by_key, table.keys))
        return Change(
            deletes=(going, *(row for row, _ in changed)),
            inserts=(self.fresh(table), *(self.update(table, row, columns) for row, columns in changed)),
        )

    def partner_goes(self, table: Table) -> Change:
        rows = self.state[table.name]
        going = rows[0]
        others = [row for row in rows if row != going]
        moved = self.pick(others, 0)
        new = self.update(table, moved, (*table.keys, *table.values))
        return Change(deletes=(going, moved), inserts=(new,))

    def cancelling(self) -> tuple[Commit, ...]:
        passing = {t.name: (self.fresh(t),) for t in self.tables}
        leaving = {t.name: (self.pick(self.state[t.name], 3),) for t in self.tables}
        return (
            {name: Change(inserts=rows) for name, rows in passing.items()},
            {name: Change(deletes=rows) for name, rows in leaving.items()},
            {name: Change(deletes=passing[name], inserts=leaving[name]) for name in passing},
        )

    def fresh(self, table: Table) -> Row:
        self.number += 1
        row = table.repair(table.draw(self.rng, self.number))
        taken = {old[0] for old in self.state[table.name]}
        while table.unique and row[0] in taken:
            self.number += 1
            row = table.repair(table.draw(self.rng, self.number))
        return row

    def update(self, table: Table, row: Row, columns: Iterable[str]) -> Row:
        """Return the row with these columns changed; at least one really changes if the domain allows."""
        for _ in range(10):
            drawn = dict(zip(table.columns, table.draw(self.rng, 0), strict=True))
            new = self.edit(table, row, {name: drawn[name] for name in columns})
            if new != row:
                break
        return new

    @staticmethod
    def edit(table: Table, row: Row, new: Mapping[str, object]) -> Row:
        named = {**dict(zip(table.columns, row, strict=True)), **new}
        return table.repair(tuple(named.values()))

    @staticmethod
    def pick(rows: list[Row], at: int) -> Row:
        return rows[at % len(rows)]
