"""Keeps a DataFrame's query for later processes.

A DataFrame has no text. Its lifted plan is lowered over empty leaves that carry the name of their source, and stored in
Java's serial form: exact for every expression, Python functions included, but bound to the Spark version that wrote it. What is
read back may hold classes that plans are made of, and no others.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError

from trickle.algebra.plan import Plan, Scan
from trickle.catalyst.jvm import Jvm, items
from trickle.catalyst.lift_groups import key_widths
from trickle.catalyst.lower import Lower
from trickle.catalyst.stored_calls import MARK, read_calls, write_calls
from trickle.catalyst.stored_classes import FILTER, refused_classes
from trickle.errors import DefinitionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.tables.contract import SourceTable

_MARK: Final = "__trickle_source"
_GROUPS: Final = "__trickle_groups"


def freeze(jvm: Jvm, plan: Plan, names: tuple[str, ...]) -> str:
    """Return a lifted plan as text.

    Raises:
        DefinitionError: ``UNSTORABLE_PLAN``, a part of it lives in this process only.
    """

    def leaf(node: Plan) -> DataFrame:
        source = node.source if isinstance(node, Scan) else ""
        mark = jvm.seq([_MARK, source])
        attributes = [c.handle.withQualifier(mark) for c in node.columns]
        return jvm.frame(jvm.plan("LocalRelation", jvm.seq(attributes), jvm.nil, False, jvm.none))

    lowered = Lower(jvm, leaf).lower(plan)
    named = [jvm.alias(a, n) for a, n in zip(lowered.named(plan.columns), names, strict=True)]
    try:
        stored = _rebuilt(jvm.project(named, lowered.plan), partial(_without_groups, jvm))
        data = _serial_form(jvm, stored)
        if b".expressions.objects." in data:
            data = _serial_form(jvm, write_calls(jvm, stored))
    except Py4JJavaError as error:
        text = "the DataFrame's plan cannot be stored: a part of it lives in this process only."
        raise DefinitionError("UNSTORABLE_PLAN", text, hint="Give the query as SQL text.") from error
    text = base64.b64encode(data).decode()
    try:
        thaw(jvm, text, str(jvm.spark.version))
    except DefinitionError as error:
        message = f"the DataFrame's plan cannot be stored, because it could not be read again: {error.message}"
        raise DefinitionError("UNSTORABLE_PLAN", message, hint="Give the query as SQL text.") from error
    return text


def _serial_form(jvm: Jvm, plan: Any) -> bytes:
    buffer = jvm.cls("java.io.ByteArrayOutputStream")()
    jvm.cls("java.io.ObjectOutputStream")(buffer).writeObject(plan)
    return bytes(buffer.toByteArray())


def thaw(jvm: Jvm, text: str, made_with: str) -> Any:
    """Read a plan written by ``freeze``.

    Raises:
        DefinitionError: ``UNREADABLE_PLAN``, another Spark version wrote it, or it was altered; ``PLAN_REFUSED``, it holds
            objects of classes that plans are not made of, or calls that no function of Spark makes.
    """
    hint = "Drop it and create it again, or define it by SQL text, which every version reads."
    try:
        stored = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise DefinitionError("UNREADABLE_PLAN", "its stored DataFrame was altered.", hint=hint) from error
    try:
        stream = jvm.cls("java.io.ObjectInputStream")(jvm.cls("java.io.ByteArrayInputStream")(stored))
        stream.setObjectInputFilter(jvm.cls("java.io.ObjectInputFilter$Config").createFilter(FILTER))
        read = stream.readObject()
    except Py4JJavaError as error:
        if "filter status: REJECTED" in str(error.java_exception.toString()):
            names = ", ".join(refused_classes(stored)) or "they are too deep, or of a class loaded by name"
            message = f"its stored DataFrame contains objects that do not belong to a plan ({names})."
            hint = "JVM functions of your own can be used by SQL text only. Else: who wrote the table's properties?"
            raise DefinitionError("PLAN_REFUSED", message, hint=hint) from error
        message = f"its DataFrame was stored with Spark {made_with}, and Spark {jvm.spark.version} cannot read it."
        raise DefinitionError("UNREADABLE_PLAN", message, hint=hint) from error
    if not jvm.is_instance(read, "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan"):
        raise DefinitionError("UNREADABLE_PLAN", "its stored DataFrame is not a plan.", hint=hint)
    read = _rebuilt(read, partial(_with_groups, jvm))
    return read_calls(jvm, read) if MARK.encode() in stored else read


def _rebuilt(node: Any, rule: Callable[[Any, list[Any]], Any]) -> Any:
    """Rebuild a Catalyst plan bottom-up; the rule is given a node and its new inputs."""
    return rule(node, [_rebuilt(child, rule) for child in items(node.children())])


def _without_groups(jvm: Jvm, node: Any, inputs: list[Any]) -> Any:
    """Write a function over groups as a projection over a union, for Java cannot store the nodes that Spark has for it."""
    kind = jvm.name(node)
    if not kind.startswith(("FlatMapGroupsIn", "FlatMapCoGroupsIn")):
        return node.withNewChildren(jvm.seq(inputs))
    called = jvm.alias(node.functionExpr(), " ".join((_GROUPS, kind, *map(str, key_widths(node)))))
    union = jvm.plan("Union", jvm.seq(inputs), False, False)
    return jvm.project([called, *items(node.output())], union)


def _with_groups(jvm: Jvm, node: Any, inputs: list[Any]) -> Any:
    """Undo ``_without_groups``."""
    # A projection may have no columns: one below a count, or in a recursion.
    named = node.projectList() if jvm.name(node) == "Project" else jvm.nil
    mark = str(named.head().name()).split() if named.size() else []
    if mark[:1] != [_GROUPS]:
        return node.withNewChildren(jvm.seq(inputs))
    called, *output = items(named)
    function, widths = called.child(), list(map(int, mark[2:]))
    groups = list(items(inputs[0].children()))
    if len(groups) == 1:
        return jvm.plan(mark[1], groups[0].output().take(widths[0]), function, jvm.seq(output), groups[0])
    return jvm.plan(mark[1], *widths, function, jvm.seq(output), *groups)


def thawed_leaf(
    leaf: Any, by_name: Callable[[str], SourceTable], otherwise: Callable[[Any], SourceTable | None]
) -> SourceTable | None:
    """Return the source behind a leaf of a thawed plan."""
    output = leaf.output()
    if output.size():
        qualifier = list(items(output.apply(0).qualifier()))
        if qualifier[:1] == [_MARK]:
            return by_name(qualifier[1])
    return otherwise(leaf)
