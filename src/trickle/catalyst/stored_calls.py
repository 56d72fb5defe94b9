"""Calls of Java methods in stored plans.

Spark makes many of its functions calls of a Java method, by its name. A stored plan that could hold any such call could run any
code, so none is read as an object: each is written as a function over its parts, and made again if it is one of those that
Spark's own functions make.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError

from trickle.catalyst.jvm import Jvm, items
from trickle.errors import DefinitionError

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK: Final = "__trickle_call"
_OBJECTS: Final = "org.apache.spark.sql.catalyst.expressions.objects."
_STATIC: Final = re.compile(
    r"org\.apache\.spark\.(?:"
    r"sql\.catalyst\.expressions\.(?:"
    r"(?:ArrayExpression|BitmapExpression|ExpressionImpl|ToJavaArray|json\.JsonExpression)Utils\.\w+"
    r"|(?:variant\.VariantExpressionEval|xml\.XmlExpressionEval)Utils\$\.\w+"
    r"|(?:Base64|Encode)\.encode|StringDecode\.decode|UrlCodec\$\.(?:en|de)code|variant\.SchemaOfVariant\$\.schemaOfVariant)"
    r"|sql\.catalyst\.util\.(?:CharVarcharCodegenUtils|DateTimeUtils\$|STUtils)\.\w+"
    r"|unsafe\.array\.ByteArrayMethods\.(?:contains|startsWith|endsWith)"
    r"|unsafe\.types\.ByteArray\.[lr]pad)"
)
"""Static methods that functions of Spark call."""

_OF_OBJECTS: Final = re.compile(r"evaluate|isValid|makeValid|parse|to[A-Z][a-z]+Array")
"""Methods that they call of values and of evaluators; on no object that a stored plan may hold do they more than compute."""


def write_calls(jvm: Jvm, plan: Any) -> Any:
    """Write the calls in a plan as functions over their parts.

    Raises:
        DefinitionError: ``UNSTORABLE_PLAN``, no function of Spark makes such a call.
    """
    written = []
    for call in _expressions(plan):
        kind = jvm.name(call)
        if kind not in ("Invoke", "StaticInvoke"):
            continue
        owner = str(call.staticObject().getName()) if kind == "StaticInvoke" else None
        function = str(call.functionName())
        if not _is_known(owner, function):
            text = f"the DataFrame's plan cannot be stored: it calls {owner or 'an object'}.{function}."
            raise DefinitionError("UNSTORABLE_PLAN", text, hint="Give the query as SQL text.")
        described = json.dumps(
            [owner, function, call.propagateNull(), call.returnNullable(), call.isDeterministic()],
        )
        target = [] if owner is not None else [call.targetObject()]
        parts = [jvm.literal(MARK), jvm.literal(described), jvm.literal(None, call.dataType()), *target]
        form = jvm.cls("org.apache.spark.sql.catalyst.expressions.Coalesce")
        written.append((call, form(jvm.seq([*parts, *items(call.arguments())]))))
    return plan.transformAllExpressions(jvm.replacing(written))


def read_calls(jvm: Jvm, plan: Any) -> Any:
    """Undo ``write_calls``.

    Raises:
        DefinitionError: ``PLAN_REFUSED``, no function of Spark makes such a call.
    """
    found = [e for e in _expressions(plan) if jvm.name(e) == "Coalesce" and _text(jvm, e.children().head()) == MARK]
    # From the top down: what is within another is found within what replaces that.
    return plan.transformAllExpressions(jvm.replacing((written, _call(jvm, written)) for written in found))


def _call(jvm: Jvm, written: Any) -> Any:
    named = "what it says cannot be read"
    try:
        _, described, typed, *args = items(written.children())
        owner, function, *flags = json.loads(_text(jvm, described) or "")
        named = f"{owner or 'an object'}.{function}"
        if not _is_known(owner, function):
            raise ValueError(function)
        if owner is None:
            target, *args = args
            return jvm.cls(f"{_OBJECTS}Invoke")(target, function, typed.dataType(), jvm.seq(args), jvm.nil, *flags)
        static = jvm.cls("java.lang.Class").forName(owner)
        return jvm.cls(f"{_OBJECTS}StaticInvoke")(
            static, typed.dataType(), function, jvm.seq(args), jvm.nil, *flags, jvm.none
        )
    except (Py4JError, TypeError, ValueError) as error:
        message = f"its stored DataFrame calls a Java method that no function of Spark calls ({named})."
        raise DefinitionError("PLAN_REFUSED", message, hint="Who wrote the table's properties?") from error


def _is_known(owner: object, function: object) -> bool:
    if owner is None:
        return _OF_OBJECTS.fullmatch(str(function)) is not None
    return _STATIC.fullmatch(f"{owner}.{function}") is not None


def _text(jvm: Jvm, expression: Any) -> str | None:
    """Return the text that a literal is, None if it is none."""
    return str(expression.toString()) if jvm.name(expression) == "Literal" else None


def _expressions(plan: Any) -> Iterator[Any]:
    """Return all expressions of a plan, those within others too."""
    for child in items(plan.children()):
        yield from _expressions(child)
    waiting = list(items(plan.expressions()))
    while waiting:
        expression = waiting.pop()
        yield expression
        waiting.extend(items(expression.children()))
