"""Lifting joins: their conditions told apart, NOT IN and correlated scalar subqueries turned into joins by key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trickle.algebra.aggregate_state import AggregateState, Term
from trickle.algebra.expr import Call, Cast, Col, Column, Expr, KeyPair, Lit, Output, new_column, passthrough
from trickle.algebra.plan import Aggregate, Empty, Filter, InnerJoin, OuterJoin, Plan, Project, SemiJoin

if TYPE_CHECKING:
    from trickle.catalyst.lift import Lift

_OUTER: Final = {"LeftOuter": "left", "RightOuter": "right", "FullOuter": "full"}


def lift_join(lift: Lift, node: Any) -> Plan:
    """Lift a join of any kind."""
    left, right = lift.plan(node.left()), lift.plan(node.right())
    keys: list[KeyPair] = []
    residual: list[Expr] = []
    width = left.columns
    if node.condition().isDefined():
        parts, left = lift.without_subqueries(lift.conjuncts(node.condition().get()), left)
        for part in parts:
            _sort_condition(lift, part, left.ids, right.ids, keys, residual)
    kind = node.joinType()
    name = lift.jvm.name(kind).removesuffix("$")
    args = (left, right, tuple(keys), tuple(residual))
    if name in ("Inner", "Cross"):
        return same_columns(InnerJoin(*args), (*width, *right.columns))
    if name in _OUTER:
        outer = OuterJoin(*args, kind=_OUTER[name])  # type: ignore[arg-type]
        return same_columns(outer, (*width, *right.columns))
    if name == "LeftSingle":
        return same_columns(_single_join(OuterJoin(*args)), (*width, *right.columns))
    if name == "LeftAnti" and not keys and len(residual) == 1:
        not_in = _not_in(lift, parts[0], left, right)
        if not_in is not None:
            return same_columns(not_in, width)
    if name in ("LeftSemi", "LeftAnti"):
        return same_columns(SemiJoin(*args, kind="semi" if name == "LeftSemi" else "anti"), width)
    if name == "ExistenceJoin":
        flag = lift.column(kind.exists())
        return same_columns(SemiJoin(*args, kind="existence", flag=flag), (*width, flag))
    lift.obstacle("UNSUPPORTED_OPERATOR", f"A join of kind {name} is not known.", "Use mode='full'.")
    return Empty(lift.columns(node.output()))


def _sort_condition(
    lift: Lift, part: Any, left: frozenset[int], right: frozenset[int], keys: list[KeyPair], residual: list[Expr]
) -> None:
    """Separate equalities between the sides from other conditions."""
    name = lift.jvm.name(part)
    if name in ("EqualTo", "EqualNullSafe"):
        a, b = lift.expr(part.left()), lift.expr(part.right())
        safe = name == "EqualNullSafe"
        if a.refs and b.refs and a.refs <= left and b.refs <= right:
            keys.append(KeyPair(a, b, safe))
            return
        if a.refs and b.refs and a.refs <= right and b.refs <= left:
            keys.append(KeyPair(b, a, safe))
            return
    residual.append(lift.expr(part))


def _not_in(lift: Lift, condition: Any, left: Plan, right: Plan) -> Plan | None:
    """NOT IN, which Spark joins on ``a = b OR (a = b) IS NULL``: every row of one side may decide over all of the other.

    ``a NOT IN R -> R is empty, or a is not NULL and R holds no NULL and no b = a``: two facts about R, looked up for each
    row, and an anti join by key. The facts seldom change, and then only do other rows of the left side matter.
    """
    if lift.jvm.name(condition) != "Or" or lift.jvm.name(condition.left()) != "EqualTo":
        return None
    equal, unknown = condition.left(), condition.right()
    if lift.jvm.name(unknown) != "IsNull" or not unknown.child().semanticEquals(equal):
        return None
    keys: list[KeyPair] = []
    _sort_condition(lift, equal, left.ids, right.ids, keys, [])
    if not keys:
        return None
    long = lift.jvm.singleton("org.apache.spark.sql.types.LongType")
    rows, values = (lift.column(lift.jvm.attribute(n, long)) for n in ("n", "n1"))
    has_value = Call("isnotnull", (keys[0].right,))
    counts = (
        Output(rows, Call("count", (Lit(1),))),
        Output(values, Call("count", (Lit(1),), where=has_value)),
    )
    is_empty, no_nulls = new_column("is_empty", "boolean"), new_column("no_nulls", "boolean")
    facts = (
        Output(is_empty, Call("=", (Col(rows), Lit(0)))),
        Output(no_nulls, Call("=", (Col(rows), Col(values)))),
    )
    state = AggregateState(
        (), (Term(rows), Term(values, None, (has_value,))), passthrough((rows, values)), passthrough((rows, values))
    )
    known = InnerJoin(left, Project(facts, Aggregate((), counts, right, state)), small="right")
    may_pass = Call("and", (Call("isnotnull", (keys[0].left,)), Col(no_nulls)))
    passing = Filter(Call("or", (Col(is_empty), may_pass)), known)
    return SemiJoin(passing, right, tuple(keys), kind="anti")


def _single_join(join: OuterJoin) -> Plan:
    """A correlated scalar subquery: at most one match. Two matches of a row that is there are an error.

    ``L single join R -> L left join (R grouped by key, with a count)``, the count looked at after the join, so that
    duplicates nobody asks for do no harm.
    """
    key_columns = tuple(new_column(f"k{i}") for i, _ in enumerate(join.keys))
    keyed = Project(
        (*passthrough(join.right.columns), *(Output(c, k.right) for c, k in zip(key_columns, join.keys, strict=True))),
        join.right,
    )
    count = new_column("n", "bigint")
    found = {c: new_column(c.name, c.type) for c in join.right.columns}
    grouped = Aggregate(
        tuple(Col(c) for c in key_columns),
        (
            *passthrough(key_columns),
            Output(count, Call("count", (Lit(1),))),
            *(Output(new, Call("first", (Col(c),))) for c, new in found.items()),
        ),
        keyed,
    )
    pairs = tuple(KeyPair(k.left, Col(c), k.null_safe) for k, c in zip(join.keys, key_columns, strict=True))
    joined = OuterJoin(join.left, grouped, pairs, join.residual)
    values = (Output(c, single_value(count, new, c)) for c, new in found.items())
    return Project((*passthrough(join.left.columns), *values), joined)


def single_value(count: Column, found: Column, like: Column) -> Expr:
    """Return a scalar subquery's value, and an error if it had more than one row."""
    message = Lit("SCALAR_SUBQUERY_TOO_MANY_ROWS: a scalar subquery of a stream table returned more than one row")
    fail = Cast(Call("raise_error", (message,)), like)
    return Call("if", (Call(">", (Col(count), Lit(1))), fail, Col(found)))


def same_columns(plan: Plan, columns: tuple[Column, ...]) -> Plan:
    """Return a plan with just these of its columns, in this order."""
    return plan if plan.columns == columns else Project(passthrough(columns), plan)
