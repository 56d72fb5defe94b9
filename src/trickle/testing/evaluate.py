"""Plans evaluated over bags in Python: what the laws of change are tested against, without Spark.

Rows are tuples in the order of a plan's columns; a bag counts them. Expressions are the engine's own (columns, constants and
a few functions): a user's opaque expression cannot be evaluated here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Final

from trickle.algebra.expr import Call, Expr
from trickle.algebra.plan import (
    Aggregate,
    Empty,
    Expand,
    Filter,
    GroupMap,
    InnerJoin,
    Iterate,
    Join,
    Loop,
    LoopRef,
    OuterJoin,
    Plan,
    Project,
    Repeat,
    RowWise,
    Scan,
    SemiJoin,
    Shared,
    TopK,
    Union,
    Values,
    When,
    Window,
)
from trickle.testing.expressions import AGGREGATES, SCALARS, Env, value_of

Row = tuple[Any, ...]
Bag = Counter[Row]
Database = Mapping[tuple[str, str], Bag]
"""The bag of each source at ``old``, ``new`` and ``change``."""


def evaluate(plan: Plan, database: Database, loops: Mapping[int, Bag] | None = None) -> Bag:
    """Return a plan's rows."""
    return EVALUATORS[type(plan)](plan, database, loops or {})


def plus(rows: Bag, change: Bag) -> Bag:
    """Add a change (weight last) to plain rows; zero counts vanish, negative ones stay to be seen."""
    total = Counter(rows)
    for row, count in change.items():
        total[row[:-1]] += row[-1] * count
    return Counter({row: count for row, count in total.items() if count})


def _rows(plan: Plan, bag: Bag) -> Iterable[tuple[Env, int]]:
    ids = [c.id for c in plan.columns]
    return ((dict(zip(ids, row, strict=True)), count) for row, count in bag.items())


def _bag(plan: Plan, rows: Iterable[tuple[Env, int]]) -> Bag:
    result: Bag = Counter()
    for env, count in rows:
        result[tuple(env[c.id] for c in plan.columns)] += count
    return result


def _scan(plan: Scan, database: Database, loops: Mapping[int, Bag]) -> Bag:  # noqa: ARG001
    return database[plan.source, plan.at]


def _values(plan: Values, database: Database, loops: Mapping[int, Bag]) -> Bag:  # noqa: ARG001
    """Take the handle for the rows."""
    return Counter(plan.handle)


def _empty(plan: Plan, database: Database, loops: Mapping[int, Bag]) -> Bag:  # noqa: ARG001
    return Counter()


def _shared(plan: Shared, database: Database, loops: Mapping[int, Bag]) -> Bag:
    return evaluate(plan.child, database, loops)


def _when(plan: When, database: Database, loops: Mapping[int, Bag]) -> Bag:
    return evaluate(plan.child, database, loops) if evaluate(plan.trigger, database, loops) else Counter()


def _filter(plan: Filter, database: Database, loops: Mapping[int, Bag]) -> Bag:
    rows = _rows(plan.child, evaluate(plan.child, database, loops))
    return _bag(plan, ((env, n) for env, n in rows if value_of(plan.condition, env) is True))


def _project(plan: Project, database: Database, loops: Mapping[int, Bag]) -> Bag:
    rows = _rows(plan.child, evaluate(plan.child, database, loops))
    return _bag(plan, (({o.column.id: value_of(o.expr, env) for o in plan.outputs}, n) for env, n in rows))


def _meets(join: Join, left: Env, right: Env) -> bool:
    both = {**left, **right}
    equal = (
        SCALARS["<=>" if k.null_safe else "="](value_of(k.left, left), value_of(k.right, right)) for k in join.keys
    )
    return all(v is True for v in chain(equal, (value_of(r, both) for r in join.residual)))


def _sides(join: Join, database: Database, loops: Mapping[int, Bag]) -> tuple[list[tuple[Env, int]], ...]:
    return tuple(list(_rows(p, evaluate(p, database, loops))) for p in join.inputs)


def _inner(plan: InnerJoin, database: Database, loops: Mapping[int, Bag]) -> Bag:
    lefts, rights = _sides(plan, database, loops)
    return _bag(plan, (({**a, **b}, n * m) for a, n in lefts for b, m in rights if _meets(plan, a, b)))


def _outer(plan: OuterJoin, database: Database, loops: Mapping[int, Bag]) -> Bag:
    lefts, rights = _sides(plan, database, loops)
    rows = [({**a, **b}, n * m) for a, n in lefts for b, m in rights if _meets(plan, a, b)]
    if plan.kind in ("left", "full"):
        padding = dict.fromkeys(plan.right.ids)
        rows += [({**a, **padding}, n) for a, n in lefts if not any(_meets(plan, a, b) for b, _ in rights)]
    if plan.kind in ("right", "full"):
        padding = dict.fromkeys(plan.left.ids)
        rows += [({**padding, **b}, n) for b, n in rights if not any(_meets(plan, a, b) for a, _ in lefts)]
    return _bag(plan, rows)


def _semi(plan: SemiJoin, database: Database, loops: Mapping[int, Bag]) -> Bag:
    lefts, rights = _sides(plan, database, loops)
    found = [(a, n, any(_meets(plan, a, b) for b, _ in rights)) for a, n in lefts]
    if plan.flag is not None:
        return _bag(plan, (({**a, plan.flag.id: has}, n) for a, n, has in found))
    return _bag(plan, ((a, n) for a, n, has in found if has == (plan.kind == "semi")))


def _aggregate(plan: Aggregate, database: Database, loops: Mapping[int, Bag]) -> Bag:
    groups: dict[Row, list[Env]] = {} if plan.keys else {(): []}
    for env, count in _rows(plan.child, evaluate(plan.child, database, loops)):
        groups.setdefault(tuple(value_of(k, env) for k in plan.keys), []).extend([env] * count)

    def output(expr: Expr, key: Row, rows: list[Env]) -> Any:
        if expr in plan.keys:
            return key[plan.keys.index(expr)]
        if isinstance(expr, Call) and expr.name in AGGREGATES:
            passing = [env for env in rows if expr.where is None or value_of(expr.where, env) is True]
            values = [value_of(expr.args[0], env) for env in passing]
            return AGGREGATES[expr.name]([v for v in values if v is not None])
        return value_of(expr, {})

    return _bag(plan, (({o.column.id: output(o.expr, k, rows) for o in plan.outputs}, 1) for k, rows in groups.items()))


def _window(plan: Window, database: Database, loops: Mapping[int, Bag]) -> Bag:
    """Return ranks, and aggregates of whole partitions."""
    partitions: dict[Row, list[Env]] = {}
    for env, count in _rows(plan.child, evaluate(plan.child, database, loops)):
        partitions.setdefault(tuple(value_of(p, env) for p in plan.partition), []).extend([env] * count)
    made: list[tuple[Env, int]] = []
    for rows in partitions.values():
        rows.sort(key=lambda env: _place(plan.order, env))
        places = [_place(plan.order, env) for env in rows]
        for number, env in enumerate(rows):
            values = {o.column.id: _window_value(o.expr, rows, places, number) for o in plan.functions}
            made.append(({**env, **values}, 1))
    return _bag(plan, made)


def _place(order: tuple[Expr, ...], env: Env) -> Row:
    return tuple((v is not None, v or 0) for v in (value_of(o, env) for o in order))


def _window_value(expr: Expr, rows: list[Env], places: list[Row], number: int) -> Any:
    match expr:
        case Call("row_number"):
            return number + 1
        case Call("rank"):
            return places.index(places[number]) + 1
        case Call("dense_rank"):
            return len(set(places[: number + 1]))
        case Call(name, (value,)):
            return AGGREGATES[name]([v for v in (value_of(value, env) for env in rows) if v is not None])
    message = f"{expr} can only be evaluated by Spark"
    raise TypeError(message)


def _row_wise(plan: RowWise, database: Database, loops: Mapping[int, Bag]) -> Bag:
    """Call the handle with the values that the operator reads, by their ids; it gives rows of what is made."""
    ids = [c.id for c in plan.made]
    rows = _rows(plan.child, evaluate(plan.child, database, loops))
    made = ((env, row, n) for env, n in rows for row in plan.handle(*(env[ref] for ref in sorted(plan.refs))))
    return _bag(plan, (({**env, **dict(zip(ids, row, strict=True))}, n) for env, row, n in made))


def _expand(plan: Expand, database: Database, loops: Mapping[int, Bag]) -> Bag:
    result: Bag = Counter()
    for env, count in _rows(plan.child, evaluate(plan.child, database, loops)):
        for projection in plan.projections:
            result[tuple(value_of(e, env) for e in projection)] += count
    return result


def _group_map(plan: GroupMap, database: Database, loops: Mapping[int, Bag]) -> Bag:
    """Call the handle with the rows of each input that have one key; it gives rows."""
    groups: dict[Row, list[list[Row]]] = {}
    for place, (child, keys) in enumerate(zip(plan.children, plan.keys, strict=True)):
        for env, count in _rows(child, evaluate(child, database, loops)):
            key = tuple(value_of(k, env) for k in keys)
            group = groups.setdefault(key, [[] for _ in plan.children])
            group[place] += [tuple(env.values())] * count
    return Counter(row for group in groups.values() for row in plan.handle(*group))


def _repeat(plan: Repeat, database: Database, loops: Mapping[int, Bag]) -> Bag:
    result: Bag = Counter()
    for row, count in evaluate(plan.child, database, loops).items():
        result[(*row[:-1], 1 if row[-1] > 0 else -1)] += count * abs(row[-1])
    return +result


def _union(plan: Union, database: Database, loops: Mapping[int, Bag]) -> Bag:
    result: Bag = Counter()
    for child in plan.children:
        result.update(evaluate(child, database, loops))
    return result


def _top_k(plan: TopK, database: Database, loops: Mapping[int, Bag]) -> Bag:
    rows = [env for env, n in _rows(plan.child, evaluate(plan.child, database, loops)) for _ in range(n)]
    rows.sort(key=lambda env: _place(plan.order, env))
    end = None if plan.limit is None else plan.offset + plan.limit
    return _bag(plan, ((env, 1) for env in rows[plan.offset : end]))


def _loop(plan: Loop, database: Database, loops: Mapping[int, Bag]) -> Bag:
    return _followed(evaluate(plan.anchor, database, loops), plan.step, plan.id, database, loops)


def _loop_ref(plan: LoopRef, database: Database, loops: Mapping[int, Bag]) -> Bag:  # noqa: ARG001
    return loops[plan.loop]


def _iterate(plan: Iterate, database: Database, loops: Mapping[int, Bag]) -> Bag:
    return _followed(evaluate(plan.seed, database, loops), plan.step, plan.loop, database, loops)


def _followed(last: Bag, step: Plan, loop: int, database: Database, loops: Mapping[int, Bag]) -> Bag:
    """Apply a step to rows, and to what it makes of them, until it makes none."""
    result: Bag = Counter(last)
    while last:
        last = evaluate(step, database, {**loops, loop: last})
        result.update(last)
    return result


EVALUATORS: Final[Mapping[type[Plan], Callable[..., Bag]]] = {
    Scan: _scan,
    Values: _values,
    Empty: _empty,
    Shared: _shared,
    When: _when,
    Filter: _filter,
    Project: _project,
    InnerJoin: _inner,
    OuterJoin: _outer,
    SemiJoin: _semi,
    Aggregate: _aggregate,
    Window: _window,
    RowWise: _row_wise,
    Expand: _expand,
    GroupMap: _group_map,
    Repeat: _repeat,
    Union: _union,
    TopK: _top_k,
    Loop: _loop,
    LoopRef: _loop_ref,
    Iterate: _iterate,
}
