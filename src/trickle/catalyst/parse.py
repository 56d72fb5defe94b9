"""Text that is one query, and nothing else.

Spark runs some statements as soon as it analyses them (scripts, EXECUTE IMMEDIATE), others when a plan is made of them. So a
text is parsed first, which does nothing, and each node of what the parser gives must be known as a part of a query.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from trickle.catalyst.jvm import Jvm, items
from trickle.errors import DefinitionError, kind_of

_CATALYST: Final = "org.apache.spark.sql.catalyst."
_PACKAGES: Final = (f"{_CATALYST}plans.logical.", f"{_CATALYST}analysis.", f"{_CATALYST}expressions.")

# What Spark's parser builds queries of.
_PARTS: Final = frozenset(
    {
        "Aggregate",
        "Deduplicate",
        "Distinct",
        "Except",
        "Filter",
        "Generate",
        "GlobalLimit",
        "Intersect",
        "Join",
        "LateralJoin",
        "LimitAll",
        "LocalLimit",
        "LocalRelation",
        "Offset",
        "OneRowRelation",
        "PipeOperator",
        "Pivot",
        "Project",
        "RelationTimeTravel",
        "RepartitionByExpression",
        "ResolvedInlineTable",
        "Sample",
        "ScriptTransformation",
        "Sort",
        "SubqueryAlias",
        "Union",
        "Unpivot",
        "UnresolvedEventTimeWatermark",
        "UnresolvedHaving",
        "UnresolvedHint",
        "UnresolvedInlineTable",
        "UnresolvedRelation",
        "UnresolvedSubqueryColumnAliases",
        "UnresolvedTVFAliases",
        "UnresolvedTableValuedFunction",
        "UnresolvedWith",
        "WithWindowDefinition",
    }
)
# IDENTIFIER(…) in place of a name: a function from the name to the node, which may be a command.
_NAMED_LATER: Final = "PlanWithUnresolvedIdentifier"

TOO_DEEP: Final = "TOO_DEEP"


def parse_query(jvm: Jvm, session: Any, text: object) -> Any:
    """Return the parsed plan of a text that is exactly one query; analyses and runs nothing.

    Raises:
        DefinitionError: ``NOT_A_QUERY``, ``BAD_SQL`` with Spark's message and position, or ``TOO_DEEP``.
    """
    from pyspark.errors import PySparkException

    if not isinstance(text, str):
        raise not_a_query(f"{kind_of(text)} is")
    try:
        text.encode()
        parsed = session.sessionState().sqlParser().parsePlan(text)
    except UnicodeEncodeError as error:
        raise DefinitionError(
            "BAD_SQL", f"the query is not valid Unicode: {error}.", hint="Remove the lone surrogate."
        ) from error
    except PySparkException as error:
        if error.getCondition() == "FAILED_TO_PARSE_TOO_COMPLEX":
            raise too_deep() from error
        raise bad_sql(error) from error
    except Py4JJavaError as error:
        if is_stack_overflow(error):
            raise too_deep() from error
        raise
    _check(jvm, parsed)
    return parsed


def names_read(jvm: Jvm, session: Any, text: str) -> frozenset[tuple[str, ...]]:
    """Name the tables and views that a query reads, as it writes them; names of CTEs are none."""
    names: set[tuple[str, ...]] = set()
    own: set[str] = set()
    for node in _nodes(parse_query(jvm, session, text)):
        match jvm.name(node):
            case "UnresolvedRelation":
                names.add(tuple(str(part) for part in items(node.multipartIdentifier())))
            case "UnresolvedWith":
                own |= {str(child.alias()).lower() for child in items(node.innerChildren())}
    return frozenset(name for name in names if len(name) > 1 or name[0].lower() not in own)


def _nodes(plan: Any) -> Iterator[Any]:
    """Yield every node, also in subqueries of expressions and in CTEs, which are inner children."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(items(node.children()))
        waiting.extend(items(node.innerChildren()))


def not_a_query(what: str) -> DefinitionError:
    """Build the error for what is not a query; ``what`` reads ``… is``."""
    hint = "Give one SELECT, VALUES, WITH or TABLE query, or a DataFrame."
    return DefinitionError("NOT_A_QUERY", f"{what} not a query.", hint=hint)


def bad_sql(error: Exception) -> DefinitionError:
    """Build the error for a query that Spark does not understand."""
    hint = "Correct the query; Spark's message says where."
    return DefinitionError("BAD_SQL", f"Spark cannot analyse the query: {without_plan(str(error))}", hint=hint)


def without_plan(said: str) -> str:
    r"""Return what Spark says of a query without the plan that it appends; a place in the text stays.

    >>> without_plan("[X] no `a`; line 1 pos 7;\n'Project ['a]\n+- OneRowRelation\n")
    '[X] no `a`; line 1 pos 7'
    """
    return said if "== SQL" in said else said.partition(";\n")[0]


def too_deep() -> DefinitionError:
    """Build the error for a query that overflows a stack."""
    hint = "Split it into views or stream tables, write long chains of OR as IN, or give the JVM a larger stack (-Xss)."
    return DefinitionError(TOO_DEEP, "the query is nested too deep for Spark.", hint=hint)


def is_stack_overflow(error: Py4JJavaError) -> bool:
    """Return whether the JVM ran out of stack."""
    return str(error.java_exception.getClass().getName()) == "java.lang.StackOverflowError"


def _check(jvm: Jvm, plan: Any) -> None:
    """Look at every node, also in subqueries of expressions and in CTEs, which are inner children."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        path = str(node.getClass().getName())
        package = next((p for p in _PACKAGES if path.startswith(p)), None)
        name = path.removeprefix(package or "")
        if package is not None and name == _NAMED_LATER:
            waiting.append(node.planBuilder().apply(jvm.seq(["t"]), node.children()))
        elif package is None or name not in _PARTS:
            raise not_a_query(f"{_shown(name)} is a command or a script,")
        waiting.extend(items(node.children()))
        waiting.extend(items(node.innerChildren()))


def _shown(name: str) -> str:
    return name.rpartition(".")[2].rstrip("$").removeprefix("Unresolved")
