"""Golden cases for each rewrite of a plan or a change plan: where it fires, and where it must not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from trickle.algebra.expr import Call, Col, KeyPair, Lit, new_column, passthrough
from trickle.algebra.plan import (
    Aggregate,
    Empty,
    Filter,
    InnerJoin,
    OuterJoin,
    Plan,
    Project,
    Scan,
    SemiJoin,
    Shared,
    TopK,
    Union,
    Window,
)
from trickle.compile.change_plan import ApplyBag, ReplaceKeys
from trickle.compile.narrow_scans import narrow_scans
from trickle.compile.order_joins import order_joins
from trickle.compile.program import compile_plan
from trickle.compile.prune import prune
from trickle.compile.push_keys import push_keys
from trickle.compile.state_tables import cut_state_tables
from trickle.compute.key_propagation import KeyPropagation, Keys
from trickle.compute.key_ranges import narrow
from trickle.rules.derive import restrict

from .case import Case
from .rules import state, totals
from .tables import cities, col, customers, joined, orders, out, pick, positive

if TYPE_CHECKING:
    from trickle.algebra.expr import Column
    from trickle.compute.key_propagation import Wanted


def narrow_scans_() -> tuple[Case, ...]:
    def case(title: str, plan: Plan, *, fires: bool = True) -> Case:
        return Case(title, plan, narrow_scans(plan), fires, means="")

    table = orders()
    two = Union((orders(), table), tuple(new_column(c.name) for c in table.columns))
    return (
        case("only columns in use are read", pick(positive(table, "amount"), "customer")),
        case("a column that only joins is read", pick(joined(orders(), customers(), "customer"), "city")),
        case("one is kept to count rows by", Aggregate((), (out("n", Call("count", (Lit(1),))),), table)),
        case("no change: all columns are in use", positive(table, "amount"), fires=False),
        case("no change: a union goes by position", pick(two, "customer"), fires=False),
    )


def touched(plan: Plan, *names: str) -> SemiJoin:
    """Restrict a plan to the keys of changed orders."""
    changed = replace(orders(), at="change")
    keys = tuple(out(f"k{i}", col(changed, c)) for i, c in enumerate(("customer", "amount")[: len(names)]))
    return restrict(plan, tuple(col(plan, n) for n in names), Project(keys, changed))


def push_keys_() -> tuple[Case, ...]:
    def case(title: str, plan: Plan, *, fires: bool = True) -> Case:
        return Case(title, plan, push_keys(plan), fires)

    table = orders()
    pair = joined(orders(), customers(), "customer")
    by_partition = Window((out("w", Call("rank", ())),), (col(table, "customer"),), (col(table, "amount"),), table)
    union = Union((customers(), cities()), (new_column("id"), new_column("what")))
    left, right = orders(), customers()
    anti = SemiJoin(left, right, (KeyPair(col(left, "customer"), col(right, "id")),), kind="anti")
    doubled = Project((out("double", Call("+", (col(table, "amount"), col(table, "amount")))),), table)
    return (
        case("a filter lets keys through", touched(positive(table, "amount"), "customer")),
        case("both sides of an equality are restricted", touched(pair, "customer")),
        case("each side by its own keys, both again above", touched(pair, "amount", "city")),
        case("groups are restricted by their key", touched(totals(table), "customer")),
        case("partitions are restricted by their key", touched(by_partition, "customer")),
        case("all children of a union are restricted", touched(union, "what")),
        case("the kept side of an anti join is restricted, its partners too", touched(anti, "customer")),
        case("a computed key is its expression below", touched(doubled, "double")),
        case("no change: at a scan", touched(table, "customer"), fires=False),
        case("no change: not a group's key", touched(totals(table), "total"), fires=False),
        case("no change: a top", touched(TopK((col(table, "id"),), 3, 0, table), "customer"), fires=False),
    )


def order_joins_() -> tuple[Case, ...]:
    pair = joined(orders(), customers(), "customer")
    change = replace(cities(), at="change")
    last = joined(pair, change, "city")
    star, a, b = replace(orders(), at="change"), customers(), cities()
    first = InnerJoin(star, a, (KeyPair(col(star, "customer"), col(a, "id")),))
    both = InnerJoin(first, b, (KeyPair(col(star, "amount"), col(b, "id")),))
    rows_of_a_key = {"customers": 50.0, "cities": 2.0}
    by_fan_out = order_joins(both, lambda source, _column: rows_of_a_key[source])
    tables = joined(pair, cities(), "city")
    return (
        Case("joins start from the change", last, order_joins(last)),
        Case("the table with the smallest fan-out comes first", both, by_fan_out),
        Case("no change: nothing is small", tables, order_joins(tables), fires=False),
    )


def prune_() -> tuple[Case, ...]:
    left, right = orders(), customers()
    nothing = Empty(right.columns)
    keys = (KeyPair(col(left, "customer"), col(right, "id")),)
    union = Union((pick(left, "id", "amount"), nothing), (new_column("x"), new_column("y")))
    flag = new_column("has", "boolean")
    shared = Shared("s1", replace(left, at="change"))
    count = Aggregate((), (out("n", Call("count", (Lit(1),))),), nothing)

    def case(title: str, plan: Plan, *, fires: bool = True) -> Case:
        return Case(title, plan, prune(plan), fires)

    return (
        case("a join with nothing is nothing", InnerJoin(left, nothing, keys)),
        case("a union of one term is the term", union),
        case("an anti join against nothing is its left side", SemiJoin(left, nothing, keys, kind="anti")),
        case("nothing exists in nothing", SemiJoin(left, nothing, keys, kind="existence", flag=flag)),
        case("groups of nothing are nothing", totals(Empty(left.columns))),
        Case("what turned out empty", positive(shared, "amount"), prune(positive(shared, "amount"), {"s1"}), means=""),
        case("no change: one row over nothing", count, fires=False),
        case("no change: nothing is empty", joined(left, right, "customer"), fires=False),
    )


def state_tables() -> tuple[Case, ...]:
    def case(title: str, plan: Plan, *, fires: bool = True, **options: bool) -> Case:
        top, found = cut_state_tables(plan, **options)
        parts = {"table": top, **{f"state table {s.name}": s.plan for s in found}}
        return Case(title, plan, parts if found else top, fires, means="")

    table = orders()
    additive = replace(totals(table), state=state(table))
    merged = replace(totals(table), state=state(table, with_least=True))
    grouped = totals(table)
    inexact = replace(grouped, inexact=True)
    pair = joined(orders(), customers(), "customer")
    read = positive(inexact, "total")
    return (
        case("the state of an additive aggregate", additive),
        case("the state of an aggregate with a least value", merged),
        case("the input of a top-k that joins make", TopK(tuple(Col(c) for c in pair.columns), 2, 0, pair)),
        case("values that may have other last digits, if something reads them", read),
        case("no change: a top-k of one table", TopK(tuple(map(Col, table.columns)), 2, 0, table), fires=False),
        case("no change: no form as a state", grouped, fires=False),
        case("no change: only states that are added to", merged, fires=False, merged=False),
        case("no change: only what is required", additive, fires=False, only_required=True),
    )


def derived(title: str, plan: Plan, *, without: frozenset[str] = frozenset()) -> Case:
    """Derive the whole change plan."""
    program = compile_plan(plan, without | {"narrow_scans", "state_tables", "push_keys", "order_joins"})
    match program.derive(frozenset(program.used)):
        case ReplaceKeys(touched=touched_keys, rows=rows):
            return Case(title, plan, {"touched": touched_keys, "new rows": rows}, means="")
        case ApplyBag(change=change, shortcut=None):
            return Case(title, plan, change, means="")
        case ApplyBag(change=change, shortcut=shortcut):
            unless = {} if shortcut.unless is None else {"unless": shortcut.unless}
            return Case(title, plan, {"change": shortcut.change, **unless, "then": change}, means="")
    raise AssertionError(title)


def replace_keys() -> tuple[Case, ...]:
    grouped = totals(orders())
    one = Aggregate((), (out("n", Call("count", (Lit(1),))),), orders())
    hidden = pick(grouped, "total")
    return (
        derived("rows of touched keys are computed after the change alone", positive(grouped, "total")),
        derived("the one row is replaced", one),
        derived("a key that the result does not show: before and after", hidden),
        derived("switched off: before and after", grouped, without=frozenset({"replace_keys"})),
    )


def stored_top() -> tuple[Case, ...]:
    table = orders()
    order = tuple(Col(c) for c in table.columns)
    place = out("place", Call("row_number", ()))
    numbered = Window((place,), (), order, table)
    by_customer = Window((place,), order[1:2], order, table)
    second = Call("<=", (Col(place.column), Lit(2)))
    top = TopK(order, 2, 0, table)
    return (
        derived("stored rows and the change, unless a stored row went", top),
        derived("a window over all rows is compared with what is stored", numbered),
        derived("after an offset, as well", TopK(order, 2, 1, table)),
        derived("the first ranks of all rows", Filter(second, numbered, keeps_first=True)),
        derived("the first ranks of partitions", Filter(second, by_customer, keeps_first=True)),
        derived("another filter over ranks", Filter(second, by_customer)),
        derived("switched off: before and after", top, without=frozenset({"stored_top"})),
    )


def keys_of(_leaf: Plan, _column: Column) -> Keys:
    """Whatever is asked for."""
    return Keys(pa.chunked_array([[3, 7, 5]]))


def key_lookup() -> tuple[Case, ...]:
    def case(title: str, plan: Plan, *, fires: bool = True) -> Case:
        class Reader:
            read_keys = staticmethod(keys_of)

            def read_scan(self, scan: Scan, wanted: Wanted) -> Plan:
                by = ", ".join(c.name for c in scan.base if c.id in wanted)
                return Shared(f"rows of {scan.source} by {by}", scan) if by else scan

            def compute_part(self, part: Plan) -> Plan:
                return part

        return Case(title, plan, KeyPropagation(Reader()).visit(plan), fires)

    change = replace(orders(), at="change")
    table = customers()
    named = Project((out("who", col(table, "id")), *passthrough(table.columns[1:])), table)
    union = Union((customers(), cities()), (new_column("id", "bigint"), new_column("what", "bigint")))
    chain = joined(joined(change, customers(), "customer"), cities(), "city")
    keys = (KeyPair(col(change, "customer"), col(table, "id")),)
    full = OuterJoin(change, table, keys, kind="full")
    return (
        case("a table is looked up by the keys that it meets", joined(change, table, "customer")),
        case("rows found in one table give the keys of the next", chain),
        case("keys pass a projection", joined(change, named, "customer", "who")),
        case("keys pass groups by their key", joined(change, totals(orders()), "customer", "customer")),
        case("keys pass a union to all its children", joined(change, union, "customer")),
        case("partners of an anti join", SemiJoin(change, table, keys, kind="anti")),
        case("no change: not a group's key", joined(change, totals(orders()), "customer", "total"), fires=False),
        case("no change: a full join keeps all rows", full, fires=False),
        case("no change: the driver holds nothing", joined(orders(), customers(), "customer"), fires=False),
    )


def key_ranges() -> tuple[Case, ...]:
    def case(title: str, plan: Plan, *, fires: bool = True) -> Case:
        return Case(title, plan, narrow(plan, keys_of), fires, means="")

    change = replace(orders(), at="change")
    by_name = Scan("names", (new_column("id", "binary"), new_column("name", "string")))
    return (
        case("a table is read within the range of the keys that it meets", joined(change, customers(), "customer")),
        case("no change: all rows are needed", joined(orders(), customers(), "customer"), fires=False),
        case("no change: values without a literal", joined(change, by_name, "customer"), fires=False),
    )


PASSES = {
    "narrow_scans": narrow_scans_,
    "push_keys": push_keys_,
    "order_joins": order_joins_,
    "prune": prune_,
    "state_tables": state_tables,
    "replace_keys": replace_keys,
    "stored_top": stored_top,
    "key_lookup": key_lookup,
    "key_ranges": key_ranges,
}

ELSEWHERE = {
    "merged_state": "a case of state_tables",
    **dict.fromkeys(
        ("driver_execution", "declared_keys", "driver_io", "column_cache"),
        "reads or computes, rewrites nothing",
    ),
}
"""Optimisations that are no rewrites of plans."""
