"""The laws of change, one module for each, and the catalogue of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from trickle.algebra.plan import (
    Aggregate,
    Expand,
    Filter,
    GroupMap,
    InnerJoin,
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
from trickle.rules.by_key import (
    change_of_aggregate,
    change_of_group_map,
    change_of_top_k,
    change_of_window,
    law_of_aggregate,
    law_of_window,
)
from trickle.rules.derive import Derive, Rule
from trickle.rules.join_inner import change_of_inner_join
from trickle.rules.join_outer import change_of_outer_join
from trickle.rules.join_semi import change_of_semi_join, law_of_semi_join
from trickle.rules.linear import (
    change_of_expand,
    change_of_filter,
    change_of_loop_ref,
    change_of_project,
    change_of_row_wise,
    change_of_scan,
    change_of_union,
)
from trickle.rules.recursion import change_of_loop

CHANGE_RULES: Final[Mapping[type[Plan], Rule]] = MappingProxyType(
    {
        Scan: Rule(change_of_scan),
        LoopRef: Rule(change_of_loop_ref),
        Filter: Rule(change_of_filter, "linear: filter the change"),
        Project: Rule(change_of_project, "linear: project the change"),
        RowWise: Rule(change_of_row_wise, "linear: only changed rows are expanded or evaluated"),
        Expand: Rule(change_of_expand, "linear: only changed rows are expanded"),
        Union: Rule(change_of_union, "linear: the children's changes add up"),
        InnerJoin: Rule(change_of_inner_join, "bilinear: change(L) with new(R) + old(L) with change(R)"),
        OuterJoin: Rule(change_of_outer_join, "inner join + padded anti joins"),
        SemiJoin: Rule(change_of_semi_join, law_of_semi_join),
        Aggregate: Rule(change_of_aggregate, law_of_aggregate),
        Window: Rule(change_of_window, law_of_window),
        GroupMap: Rule(change_of_group_map, "by key: the function is called for groups of changed rows"),
        TopK: Rule(change_of_top_k, "top before and after"),
        Loop: Rule(change_of_loop, "recursion: the change is followed through the steps"),
    }
)
"""The rule of each kind of node, and its law in a sentence, as ``explain`` shows it."""

__all__ = ["CHANGE_RULES", "Derive", "Rule"]
