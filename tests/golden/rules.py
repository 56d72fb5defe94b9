"""A golden case or more for each law: what the change of a node is."""

from __future__ import annotations

from trickle.algebra.aggregate_state import AggregateState, Term
from trickle.algebra.expr import Call, Col, KeyPair, Lit, new_column, passthrough
from trickle.algebra.plan import (
    Aggregate,
    Expand,
    Filter,
    GroupMap,
    Loop,
    LoopRef,
    OuterJoin,
    Plan,
    Project,
    RowWise,
    Scan,
    SemiJoin,
    TopK,
    Union,
    Window,
)
from trickle.algebra.walk import sources
from trickle.compile.program import SELF
from trickle.rules import CHANGE_RULES, Derive
from trickle.rules.derive import net
from trickle.rules.state_additive import change_of_state, state_of
from trickle.rules.state_merged import merge
from trickle.rules.stored_ranks import (
    FirstRanks,
    change_of_first_ranks,
    change_of_first_ranks_of_all,
    find_first_ranks,
)
from trickle.rules.stored_top import change_from_stored

from .case import Case
from .tables import cities, col, customers, joined, orders, out, pick, positive


def change(title: str, plan: Plan, *changed: str) -> Case:
    """Derive the change of a plan; of all its sources if none is named."""
    derived = Derive(frozenset(changed) or sources(plan), CHANGE_RULES).change(plan)
    return Case(title, plan, derived, means="" if changed else "change")


def scan() -> tuple[Case, ...]:
    return change("a source's change is read", orders()), change("of a source that did not change", orders(), "other")


def filter_() -> tuple[Case, ...]:
    return (change("the change is filtered", positive(orders(), "amount")),)


def project() -> tuple[Case, ...]:
    table = orders()
    plan = Project((out("doubled", Call("+", (col(table, "amount"), col(table, "amount")))),), table)
    return (change("the change is projected, with its weight", plan),)


def row_wise() -> tuple[Case, ...]:
    table = orders()
    amount = col(table, "amount").column
    plan = RowWise((new_column("one"),), table, "Generate explode(amounts)", frozenset((amount.id,)), lambda v: [(v,)])
    return (change("rows are made of changed rows; the weight stays last", plan),)


def expand() -> tuple[Case, ...]:
    table = customers()
    a, b = (Col(c) for c in table.columns)
    plan = Expand(((a, b), (a, Lit(None))), (new_column("id"), new_column("city")), table)
    return (change("each copy of a changed row has its weight", plan),)


def union() -> tuple[Case, ...]:
    plan = Union((customers(), cities()), (new_column("id"), new_column("what")))
    return change("changes add up", plan), change("one child changed", plan, "cities")


def inner_join() -> tuple[Case, ...]:
    plan = joined(orders(), customers(), "customer")
    return (
        change("left changes meet the new right, right changes the old left", plan),
        change("the right side did not change", plan, "orders"),
    )


def outer_join() -> tuple[Case, ...]:
    left, right = orders(), customers()
    keys = (KeyPair(col(left, "customer"), col(right, "id")),)
    return tuple(
        change(f"{kind}: pairs, and padded rows without a partner", OuterJoin(left, right, keys, kind=kind))
        for kind in ("left", "full")
    )


def semi_join() -> tuple[Case, ...]:
    left, right = orders(), customers()
    keys = (KeyPair(col(left, "customer"), col(right, "id")),)
    by_greater = (Call(">", (col(left, "customer"), col(right, "id"))),)
    flag = new_column("has_customer", "boolean")
    return (
        change("semi: changed left rows, and left rows of changed keys", SemiJoin(left, right, keys)),
        change("anti: the left side alone changed", SemiJoin(left, right, keys, kind="anti"), "orders"),
        change(
            "existence: the flag stands before the weight", SemiJoin(left, right, keys, kind="existence", flag=flag)
        ),
        change("without an equality all left rows are looked up", SemiJoin(left, right, (), by_greater), "customers"),
    )


def totals(child: Plan, key: str = "customer") -> Aggregate:
    """Count and sum amounts by a key."""
    by, amount = col(child, key), col(child, "amount")
    outputs = (out(key, by), out("n", Call("count", (Lit(1),))), out("total", Call("sum", (amount,))))
    return Aggregate((by,), outputs, child)


def aggregate() -> tuple[Case, ...]:
    table = orders()
    one = Aggregate((), (out("n", Call("count", (Lit(1),))),), table)
    return (
        change("groups of changed rows are computed before and after", totals(table)),
        change("without keys the one row is computed when something changed", one),
        change("the keys of a computed change are found once", totals(joined(table, customers(), "customer"), "city")),
    )


def window() -> tuple[Case, ...]:
    table = orders()
    functions = (out("place", Call("rank", ())),)
    by = (col(table, "customer"),), (col(table, "amount"),)
    return (
        change("partitions of changed rows are computed before and after", Window(functions, *by, table)),
        change("without a partition everything is", Window(functions, (), by[1], table)),
    )


def group_map() -> tuple[Case, ...]:
    left, right = orders(), customers()
    made = (new_column("rows"),)

    def count(*groups: list[tuple[object, ...]]) -> list[tuple[int]]:
        return [(sum(map(len, groups)),)]

    one = GroupMap(((col(left, "customer"),),), (left,), made, "FlatMapGroups count", count)
    keys = ((col(left, "customer"),), (col(right, "id"),))
    both = GroupMap(keys, (left, right), made, "FlatMapCoGroups count", count)
    return (
        change("the function is called for groups of changed rows", one),
        change("of two inputs, for keys that changed in either", both),
    )


def top_k() -> tuple[Case, ...]:
    table = orders()
    order = tuple(Col(c) for c in reversed(table.columns))
    return (change("the top before and after, if anything changed", TopK(order, 2, 0, table)),)


def loop() -> tuple[Case, ...]:
    edges, more = cities(), cities()
    ref = LoopRef(1, (new_column("start"), new_column("end")))
    step = joined(ref, more, "end")
    paths = Loop(1, edges, Project((out("start", Col(ref.base[0])), out("end", Col(more.base[1]))), step), ref.base)
    derived = Derive(frozenset({"cities"}), CHANGE_RULES).change(paths)
    return (Case("what base and edges brought is followed through the steps", paths, derived, means=""),)


def loop_ref() -> tuple[Case, ...]:
    ref = LoopRef(1, (new_column("start"), new_column("end")))
    derived = Derive(frozenset(), CHANGE_RULES).within(1).change(ref)
    return (Case("inside a step it stands for the rows of the last round", ref, derived, means=""),)


def state(child: Plan, *, with_least: bool = False) -> AggregateState:
    """Return the state of amounts by customer: a count, a sum, and perhaps the least."""
    amount = col(child, "amount")
    terms = [Term(new_column("n", "bigint")), Term(new_column("s1", "bigint"), amount)]
    if with_least:
        terms.append(Term(new_column("s2", "bigint"), amount, kind="least"))
    keys = (out("k0", col(child, "customer")),)
    results = (*passthrough((keys[0].column,)), *(out("value", Col(t.column)) for t in terms))
    return AggregateState(keys, tuple(terms), results, passthrough(tuple(r.column for r in results)))


def state_additive() -> tuple[Case, ...]:
    table = orders()
    form = state(table)
    of = Derive(frozenset({"orders"}), CHANGE_RULES)
    return (
        Case("what is stored", table, state_of(form, table), means=""),
        Case("what a change adds to it", table, change_of_state(form, of.change(table)), means=""),
    )


def state_merged() -> tuple[Case, ...]:
    table = orders()
    form = state(table, with_least=True)
    merged = merge(form, table, Derive(frozenset({"orders"}), CHANGE_RULES), Scan(SELF, form.columns))
    parts = {"touched": merged.keys, "new rows": merged.rows, "broken": merged.broken}
    return (Case("invalidated groups are computed from their rows", table, parts, means=""),)


def stored_top() -> tuple[Case, ...]:
    table = orders()
    plan = TopK(tuple(Col(c) for c in table.columns), 2, 0, table)
    unless, quick = change_from_stored(plan, Derive(frozenset({"orders"}), CHANGE_RULES), Scan(SELF, plan.columns))
    return (Case("new rows are ranked among the stored ones", plan, {"change": quick, "unless": unless}, means=""),)


def stored_ranks() -> tuple[Case, ...]:
    table = orders()
    amount, place = col(table, "amount"), out("place", Call("rank", ()))
    of = Derive(frozenset({"orders"}), CHANGE_RULES)

    def first(*partition: Col) -> FirstRanks:
        ranked = Window((place,), partition, (amount,), table)
        plan = Filter(Call("<=", (Col(place.column), Lit(2))), ranked, keeps_first=True)
        found = find_first_ranks(plan)
        assert found is not None
        return found

    by_customer, of_all = first(col(table, "customer")), first()
    some = change_of_first_ranks(by_customer, of, Scan(SELF, by_customer.plan.columns))
    unless, quick = change_of_first_ranks_of_all(of_all, of, Scan(SELF, of_all.plan.columns))
    return (
        Case("of a partition that lost a stored row all rows are ranked", by_customer.plan, some, means=""),
        Case("without PARTITION BY", of_all.plan, {"change": quick, "unless": unless}, means=""),
    )


def net_() -> tuple[Case, ...]:
    table = customers()
    derived = Derive(frozenset({"customers"}), CHANGE_RULES).change(pick(table, "city"))
    raw = new_column("raw", "map<int,int>", orderable=False)
    maps = Scan("maps", (raw,), "change")
    return (
        Case("weights of equal rows are added up, zeros dropped", derived, net(derived), means=""),
        Case("no change: rows that cannot be compared", maps, net(maps), fires=False, means=""),
    )


RULES = {
    "scan": scan,
    "filter": filter_,
    "project": project,
    "row_wise": row_wise,
    "expand": expand,
    "union": union,
    "inner_join": inner_join,
    "outer_join": outer_join,
    "semi_join": semi_join,
    "aggregate": aggregate,
    "window": window,
    "group_map": group_map,
    "top_k": top_k,
    "loop": loop,
    "loop_ref": loop_ref,
    "state_additive": state_additive,
    "state_merged": state_merged,
    "stored_top": stored_top,
    "stored_ranks": stored_ranks,
    "net": net_,
}
