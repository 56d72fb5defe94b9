"""What the public verbs have in common: errors of Spark and of file readers leave them as Trickle's own, cause chained."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar

from trickle.catalyst.parse import is_stack_overflow, too_deep, without_plan
from trickle.errors import SparkError, TrickleError
from trickle.session import exhaustion_told

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError

_Self = TypeVar("_Self")
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

_HINTS: Final = {
    "SCHEMA_NOT_FOUND": "Create the schema first, or correct the name.",
    "TABLE_OR_VIEW_NOT_FOUND": "Restore the table, or correct the name.",
    "FAILED_READ_FILE": "A file is missing or damaged: restore it, or take it out of the source that has it.",
    "UNREADABLE_FILE": "A file is missing or damaged: restore it, or take it out of the source that has it.",
}
_ANY_HINT: Final = "The message says what failed; the stream table is as it was."


def verb(
    method: Callable[Concatenate[_Self, _Given], _Result],
) -> Callable[Concatenate[_Self, _Given], _Result]:
    """Let a method raise Trickle's errors only, where what failed is Spark, a file, or a stack that is not deep enough."""

    @functools.wraps(method)
    def guarded(self: _Self, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        try:
            with exhaustion_told():
                return method(self, *args, **kwargs)
        except TrickleError:
            raise
        except Exception as error:
            translated = translate(error, _where(method.__name__, self, args, kwargs))
            if translated is None:
                raise
            raise translated from error

    return guarded


def _where(name: str, of: object, args: tuple[object, ...], kwargs: dict[str, object]) -> str:
    """Say what was being done: ``refresh of 'shop.totals'``."""
    given = [getattr(of, "name", None), *args[:1], kwargs.get("name"), kwargs.get("table")]
    table = next((g for g in given if isinstance(g, str)), None)
    name = name.strip("_")
    return f"{name} of '{table}'" if table is not None and name != "validate" else name


def translate(error: Exception, where: str) -> TrickleError | None:
    """Return the error to raise in place of one; None if it is not known as Spark's, or as that of a reader of files."""
    import polars as pl
    import pyarrow as pa
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    from trickle.tables.formats import format_errors

    if isinstance(error, RecursionError) or (isinstance(error, Py4JJavaError) and is_stack_overflow(error)):
        return too_deep()
    if isinstance(error, PySparkException):
        return _failed(str(error.getCondition() or "SPARK_ERROR"), where, without_plan(str(error)))
    if isinstance(error, Py4JJavaError):
        thrown = error.java_exception
        return _failed(_java_code(error), where, str(thrown.getMessage() or thrown.toString()))
    if isinstance(error, Py4JError):
        return _failed("SPARK_ERROR", where, str(error))
    if isinstance(error, (OSError, pa.ArrowException, pl.exceptions.PolarsError, *format_errors())):
        return _failed("UNREADABLE_FILE", where, f"{type(error).__name__}: {error}")
    return None


def describe_failure(error: Exception, where: str) -> TrickleError:
    """Return any error as one of Trickle's, for a report about several tables."""
    if isinstance(error, TrickleError):
        return error
    described = translate(error, where)
    if described is None:
        text = f"{where}: {type(error).__name__}: {error}"
        described = SparkError("UNEXPECTED_ERROR", text, hint="This is a defect of Trickle: please report it.")
    described.__cause__ = error
    return described


def _java_code(error: Py4JJavaError) -> str:
    thrown = error.java_exception
    for _ in range(10):  # a cause may be its own
        if any(m.getName() == "getCondition" for m in thrown.getClass().getMethods()) and thrown.getCondition():
            return str(thrown.getCondition())
        cause = thrown.getCause()
        if cause is None:
            break
        thrown = cause
    return "SPARK_ERROR"


def _failed(code: str, where: str, message: str) -> SparkError:
    text = message.strip().removeprefix(f"[{code}]").strip()
    hint = next((hint for known, hint in _HINTS.items() if code.startswith(known)), _ANY_HINT)
    return SparkError(code, f"{where}: {text}", hint=hint)
