"""Checks the arguments of the verbs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, get_args

from trickle.engine.suspend import Resumption
from trickle.errors import DefinitionError, NotDifferentiableError
from trickle.model.definition import Mode
from trickle.model.schedule import read_duration
from trickle.model.table_options import NO_OPTIONS, read_table_options
from trickle.tables.formats import RESULT_FORMAT

if TYPE_CHECKING:
    from trickle.model.reason import Reason
    from trickle.model.table_options import TableOptions


def check_mode(mode: object) -> None:
    """Refuse an unknown mode."""
    if mode not in get_args(Mode):
        raise DefinitionError("BAD_MODE", f"there is no mode {mode!r}.", hint="Use auto, differential or full.")


def check_differentiable(name: str, mode: Mode, obstacles: Sequence[Reason]) -> None:
    """Refuse mode ``differential`` for a query that cannot be maintained incrementally."""
    if mode == "differential" and obstacles:
        first, *others = obstacles
        more = "".join(f" Also {o.code}: {o.text}" for o in others)
        raise NotDifferentiableError(first.code, f"stream table '{name}': {first.text}{more}", hint=first.hint)


def read_options(words: Mapping[str, object], before: TableOptions = NO_OPTIONS) -> TableOptions:
    """Read the options that a verb was given, over those that a table has.

    Raises:
        DefinitionError: ``UNKNOWN_OPTION`` or ``BAD_OPTION``.
    """
    options = read_table_options(words, before)
    if own := sorted(RESULT_FORMAT.own_properties & options.properties.keys()):
        text = f"the option properties cannot have {own[0]!r}: Trickle sets it itself."
        raise DefinitionError("BAD_OPTION", text, hint="Leave it out.")
    return options


def check_layout(options: TableOptions, columns: Sequence[str]) -> None:
    """Refuse to partition or cluster by what is not a column of the result."""
    known = {column.lower() for column in columns}
    for column in (*options.partition_by, *options.cluster_by):
        if column.lower() not in known:
            text = f"the query gives no column {column!r} to partition or cluster by."
            raise DefinitionError("BAD_OPTION", text, hint=f"Its columns are {', '.join(columns)}.")


def check_switches(disable: object, stored_plans: object) -> None:
    """Refuse arguments of the wrong type."""
    if not isinstance(stored_plans, bool):
        text = f"stored_plans is True or False, not {stored_plans!r}."
        raise DefinitionError("BAD_OPTION", text, hint="False refuses stored DataFrame plans.")
    if not isinstance(disable, Collection) or not all(isinstance(name, str) for name in disable):
        text = f"disable is a set of names, not {disable!r}."
        raise DefinitionError("BAD_OPTION", text, hint='For instance disable={"key_lookup"}.')


def check_choice(*, replace: object, if_not_exists: object) -> None:
    """Refuse to be told both to replace a table and to leave it."""
    if replace and if_not_exists:
        text = "replace and if_not_exists exclude each other."
        raise DefinitionError("BAD_OPTION", text, hint="Give one of them.")


def check_versions(at: object) -> None:
    """Refuse values that are not versions."""
    pairs = at.items() if isinstance(at, Mapping) else () if at is None else ((at, at),)
    if not all(isinstance(n, str) and isinstance(v, int) and not isinstance(v, bool) for n, v in pairs):
        text = f"at gives the versions of sources by their names, not {at!r}."
        raise DefinitionError("BAD_OPTION", text, hint='For instance at={"orders": 43}.')


def check_names(names: object) -> None:
    """Refuse what is not a list of names; one name alone would be taken for a list of letters."""
    is_list = isinstance(names, Collection) and not isinstance(names, str | bytes)
    if names is not None and not (is_list and all(isinstance(name, str) for name in names)):  # type: ignore[attr-defined]
        text = f"names is a list of stream tables, not {names!r}."
        raise DefinitionError("BAD_OPTION", text, hint='For instance ["daily", "weekly"].')


def check_workers(workers: object) -> None:
    """Refuse a number of workers that is none."""
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        text = f"workers is a whole number of at least 1, not {workers!r}."
        raise DefinitionError("BAD_OPTION", text, hint="Two or three keep a driver busy.")


def check_until(until: object) -> None:
    """Refuse what is not a moment: without a time zone nobody knows which it is."""
    if until is not None and (not isinstance(until, datetime) or until.utcoffset() is None):
        text = f"until is a moment with a time zone, not {until!r}."
        raise DefinitionError("BAD_OPTION", text, hint="For instance datetime.now(UTC) + timedelta(hours=8).")


def check_limit(limit: object) -> None:
    """Refuse a limit that is none."""
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        text = f"limit is a whole number of at least 1, or None for all, not {limit!r}."
        raise DefinitionError("BAD_OPTION", text, hint="For instance limit=20.")


def check_text(name: str, text: object) -> None:
    """Refuse what is not a text."""
    if text is not None and not isinstance(text, str):
        raise DefinitionError("BAD_OPTION", f"{name} is a text, not {text!r}.", hint="Give a text, or nothing.")


def read_timeout(given: object) -> float | None:
    """Read a time as seconds; None is no time."""
    if given is None:
        return None
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 < given < float("inf"):
        return float(given)
    if isinstance(given, str):
        with suppress(DefinitionError):
            return read_duration(given)
    text = f"timeout is a time such as 30 seconds or '5m', not {given!r}."
    raise DefinitionError("BAD_OPTION", text, hint="Give seconds, or a duration.")


def read_resumption(**given: bool) -> Resumption | None:
    """Read what is to be done with a change that waits: at most one thing."""
    asked = [how for how in get_args(Resumption) if given.get(how)]
    if len(asked) > 1:
        text = f"resume does one of apply, full and skip, not {' and '.join(asked)}."
        raise DefinitionError("BAD_OPTION", text, hint="Choose one.")
    return asked[0] if asked else None


def check_format(given: object) -> None:
    """Refuse an unknown format of definitions."""
    if given not in ("json", "sql"):
        raise DefinitionError("BAD_OPTION", f"there is no format {given!r}.", hint="Use json or sql.")


def check_function(write: object) -> None:
    """Refuse what cannot be called."""
    if not callable(write):
        text = f"write is a function without arguments, not {write!r}."
        raise DefinitionError("BAD_OPTION", text, hint='For instance lambda: spark.sql("INSERT …").')
