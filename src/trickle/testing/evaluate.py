"""Plans evaluated over bags in Python: what the laws of change are tested against, without Spark.

Rows are tuples in the order of a plan's columns; a bag counts them. Expressions are the engine's own (columns, constants and
a few functions): a user's opaque expression cannot be evaluated here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Final

from trickle.algebra.expr import Call, Cast, Col, Column, Expr, Lit, Opaque
from trickle.algebra.plan import (
    Aggregate,
    Empty,
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
    Scan,
    SemiJoin,
    Shared,
    TopK,
    Union,
    When,
)

Row = tuple[Any, ...]
Bag = Counter[Row]
Database = Mapping[tuple[str, str], Bag]
"""The bag of each source at ``old``, ``new`` and ``change``."""

_Env = dict[int, Any]


def evaluate(plan: Plan, database: Database, loops: Mapping[int, Bag] | None = None) -> Bag:
    """Give a plan's rows."""
    return _EVALUATORS[type(plan)](plan, database, loops or {})


def plus(rows: Bag, change: Bag) -> Bag:
    """Add a change (weight last) to plain rows; zero counts vanish, negative ones stay to be seen."""
    total = Counter(rows)
    for row, count in change.items():
        total[row[:-1]] += row[-1] * count
    return Counter({row: count for row, count in total.items() if count})


def _rows(plan: Plan, bag: Bag) -> Iterable[tuple[_Env, int]]:
    ids = [c.id for c in plan.columns]
    return ((dict(zip(ids, row, strict=True)), count) for row, count in bag.items())


def _bag(plan: Plan, rows: Iterable[tuple[_Env, int]]) -> Bag:
    result: Bag = Counter()
    for env, count in rows:
        result[tuple(env[c.id] for c in plan.columns)] += count
    return result


_SCALARS: Final[Mapping[str, Callable[..., Any]]] = {
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
_AGGREGATES: Final[Mapping[str, Callable[[list[Any]], Any]]] = {
    "count": len,
    "sum": lambda values: sum(values) if values else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
}


def _value(expr: Expr, env: _Env) -> Any:
    match expr:
        case Col(column):
            return env[column.id]
        case Lit(value):
            return value
        case Cast(Lit(str() as text), Column(type="double")):
            return float(text)
        case Cast(inner):
            return _value(inner, env)
        case Call(name, args):
            return _SCALARS[name](*(_value(a, env) for a in args))
        case Opaque():
            message = f"{expr} can only be evaluated by Spark"
            raise TypeError(message)


def _scan(plan: Scan, database: Database, loops: Mapping[int, Bag]) -> Bag:  # noqa: ARG001
    return database[plan.source, plan.at]


def _empty(plan: Plan, database: Database, loops: Mapping[int, Bag]) -> Bag:  # noqa: ARG001
    return Counter()


def _shared(plan: Shared, database: Database, loops: Mapping[int, Bag]) -> Bag:
    return evaluate(plan.child, database, loops)


def _when(plan: When, database: Database, loops: Mapping[int, Bag]) -> Bag:
    return evaluate(plan.child, database, loops) if evaluate(plan.trigger, database, loops) else Counter()


def _filter(plan: Filter, database: Database, loops: Mapping[int, Bag]) -> Bag:
    rows = _rows(plan.child, evaluate(plan.child, database, loops))
    return _bag(plan, ((env, n) for env, n in rows if _value(plan.condition, env) is True))


def _project(plan: Project, database: Database, loops: Mapping[int, Bag]) -> Bag:
    rows = _rows(plan.child, evaluate(plan.child, database, loops))
    return _bag(plan, (({o.column.id: _value(o.expr, env) for o in plan.outputs}, n) for env, n in rows))


def _meets(join: Join, left: _Env, right: _Env) -> bool:
    both = {**left, **right}
    equal = (_SCALARS["<=>" if k.null_safe else "="](_value(k.left, left), _value(k.right, right)) for k in join.keys)
    return all(v is True for v in chain(equal, (_value(r, both) for r in join.residual)))


def _sides(join: Join, database: Database, loops: Mapping[int, Bag]) -> tuple[list[tuple[_Env, int]], ...]:
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
    groups: dict[Row, list[_Env]] = {} if plan.keys else {(): []}
    for env, count in _rows(plan.child, evaluate(plan.child, database, loops)):
        groups.setdefault(tuple(_value(k, env) for k in plan.keys), []).extend([env] * count)

    def output(expr: Expr, key: Row, rows: list[_Env]) -> Any:
        if expr in plan.keys:
            return key[plan.keys.index(expr)]
        if isinstance(expr, Call) and expr.name in _AGGREGATES:
            passing = [env for env in rows if expr.where is None or _value(expr.where, env) is True]
            values = [_value(expr.args[0], env) for env in passing]
            return _AGGREGATES[expr.name]([v for v in values if v is not None])
        return _value(expr, {})

    return _bag(plan, (({o.column.id: output(o.expr, k, rows) for o in plan.outputs}, 1) for k, rows in groups.items()))


def _group_map(plan: GroupMap, database: Database, loops: Mapping[int, Bag]) -> Bag:
    """Call the handle with the rows of each input that have one key; it gives rows."""
    groups: dict[Row, list[list[Row]]] = {}
    for place, (child, keys) in enumerate(zip(plan.children, plan.keys, strict=True)):
        for env, count in _rows(child, evaluate(child, database, loops)):
            key = tuple(_value(k, env) for k in keys)
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
    rows.sort(key=lambda env: tuple((v is not None, v or 0) for v in (_value(o, env) for o in plan.order)))
    end = None if plan.limit is None else plan.offset + plan.limit
    return _bag(plan, ((env, 1) for env in rows[plan.offset : end]))


def _loop(plan: Loop, database: Database, loops: Mapping[int, Bag]) -> Bag:
    last = evaluate(plan.anchor, database, loops)
    result: Bag = Counter(last)
    while last:
        last = evaluate(plan.step, database, {**loops, plan.id: last})
        result.update(last)
    return result


def _loop_ref(plan: LoopRef, database: Database, loops: Mapping[int, Bag]) -> Bag:  # noqa: ARG001
    return loops[plan.loop]


def _iterate(plan: Iterate, database: Database, loops: Mapping[int, Bag]) -> Bag:
    last = evaluate(plan.seed, database, loops)
    result: Bag = Counter(last)
    while last:
        last = evaluate(plan.step, database, {**loops, plan.loop: last})
        result.update(last)
    return result


_EVALUATORS: Final[Mapping[type[Plan], Callable[..., Bag]]] = {
    Scan: _scan,
    Empty: _empty,
    Shared: _shared,
    When: _when,
    Filter: _filter,
    Project: _project,
    InnerJoin: _inner,
    OuterJoin: _outer,
    SemiJoin: _semi,
    Aggregate: _aggregate,
    GroupMap: _group_map,
    Repeat: _repeat,
    Union: _union,
    TopK: _top_k,
    Loop: _loop,
    LoopRef: _loop_ref,
    Iterate: _iterate,
}
