"""The laws of change, one module for each; the whole catalogue at a glance."""

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
from trickle.rules.by_key import change_of_aggregate, change_of_group_map, change_of_top_k, change_of_window
from trickle.rules.derive import Derive, Rule
from trickle.rules.join_inner import change_of_inner_join
from trickle.rules.join_outer import change_of_outer_join
from trickle.rules.join_semi import change_of_semi_join
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
        Scan: change_of_scan,
        LoopRef: change_of_loop_ref,
        Filter: change_of_filter,
        Project: change_of_project,
        RowWise: change_of_row_wise,
        Expand: change_of_expand,
        Union: change_of_union,
        InnerJoin: change_of_inner_join,
        OuterJoin: change_of_outer_join,
        SemiJoin: change_of_semi_join,
        Aggregate: change_of_aggregate,
        Window: change_of_window,
        GroupMap: change_of_group_map,
        TopK: change_of_top_k,
        Loop: change_of_loop,
    }
)

__all__ = ["CHANGE_RULES", "Derive", "Rule"]
