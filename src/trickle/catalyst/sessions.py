"""Session windows as plain windows: Spark merges rows into sessions while it groups them, which no law covers.

``GROUP BY k, session_window(t, gap)`` gives each row the window [t, t + gap) and merges those of a key that meet. The same is

    reached = max(end) over the rows of k that start earlier
    number  = how many rows of k up to this one start after what was reached
    window  = [min(start), max(end)] of the rows of k with that number

and a GROUP BY k, window. Windows have a law, so sessions are built again for the touched keys alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window as Over
from pyspark.sql import functions as fn

from trickle.catalyst.jvm import analysed_plan, items

if TYPE_CHECKING:
    from trickle.catalyst.jvm import Jvm

_MARK: Final = "spark.sessionWindow"


def merge_sessions(jvm: Jvm, plan: Any) -> Any:
    """Rewrite the aggregates of an analysed plan that group by sessions, those in subqueries too."""
    if "session_window" not in str(plan.toString()):
        return plan
    while (found := _innermost(jvm, plan)) is not None:
        plan = plan.transformDownWithSubqueries(jvm.replacing([(found, _rewritten(jvm, found))]))
    return plan


def _innermost(jvm: Jvm, plan: Any) -> Any:
    """Find an aggregate by sessions below which there is no other."""
    inner = items(plan.subqueriesAll()) if jvm.contains(plan, "PLAN_EXPRESSION") else ()
    for below in (*items(plan.children()), *inner):
        found = _innermost(jvm, below)
        if found is not None:
            return found
    return plan if jvm.name(plan) == "Aggregate" and _session(jvm, plan) is not None else None


def _session(jvm: Jvm, aggregate: Any) -> Any:
    """Return the key that is a session, None if there is none."""
    for key in items(aggregate.groupingExpressions()):
        if jvm.name(key) == "AttributeReference" and key.metadata().contains(_MARK):
            return key
    return None


def _rewritten(jvm: Jvm, aggregate: Any) -> Any:
    session = _session(jvm, aggregate)
    given = list(items(aggregate.child().output()))
    keys = [k for k in items(aggregate.groupingExpressions()) if not k.semanticEquals(session)]
    with_keys = jvm.project([*given, *(jvm.alias(k, "key") for k in keys)], aggregate.child())
    names = [f"c{i}" for i in range(len(given) + len(keys))]
    place = next(i for i, a in enumerate(given) if a.exprId().equals(session.exprId()))
    start, end = fn.col(f"c{place}.start"), fn.col(f"c{place}.end")
    partition = names[len(given) :]
    by_time = Over.partitionBy(*partition).orderBy(start)
    reached = fn.max(end).over(by_time.rowsBetween(Over.unboundedPreceding, -1))
    begins = fn.when(fn.col("reached").isNull() | (start > fn.col("reached")), 1).otherwise(0)
    # With its peers: of rows that start together only one begins a session, and which one is left open.
    number = fn.sum(begins).over(by_time.rangeBetween(Over.unboundedPreceding, Over.currentRow))
    together = Over.partitionBy(*partition, "number")
    merged = fn.struct(fn.min(start).over(together).alias("start"), fn.max(end).over(together).alias("end"))
    frame = jvm.frame(with_keys).toDF(*names)
    frame = frame.withColumn("reached", reached).withColumn("number", number).withColumn(names[place], merged)
    plan = analysed_plan(frame)
    made = list(items(plan.output()))[: len(given)]
    same = [jvm.alias_as(m, g) for m, g in zip(made, given, strict=True)]
    unmarked = aggregate.transformExpressions(jvm.replacing([(session, same[place].toAttribute())]))
    return unmarked.withNewChildren(jvm.seq([jvm.project(same, plan)]))
