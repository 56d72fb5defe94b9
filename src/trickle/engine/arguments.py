"""Checks the arguments of the verbs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import get_args

from trickle.errors import DefinitionError
from trickle.model.definition import Mode


def check_mode(mode: object) -> None:
    """Refuse an unknown mode."""
    if mode not in get_args(Mode):
        raise DefinitionError("BAD_MODE", f"there is no mode {mode!r}.", hint="Use auto, differential or full.")


def check_switches(disable: object, stored_plans: object) -> None:
    """Refuse arguments of the wrong type."""
    if not isinstance(stored_plans, bool):
        text = f"stored_plans is True or False, not {stored_plans!r}."
        raise DefinitionError("BAD_OPTION", text, hint="False refuses stored DataFrame plans.")
    if not isinstance(disable, Collection) or not all(isinstance(name, str) for name in disable):
        text = f"disable is a set of names, not {disable!r}."
        raise DefinitionError("BAD_OPTION", text, hint='For instance disable={"key_lookup"}.')


def check_versions(at: object) -> None:
    """Refuse values that are not versions."""
    pairs = at.items() if isinstance(at, Mapping) else () if at is None else ((at, at),)
    if not all(isinstance(n, str) and isinstance(v, int) and not isinstance(v, bool) for n, v in pairs):
        text = f"at gives the versions of sources by their names, not {at!r}."
        raise DefinitionError("BAD_OPTION", text, hint='For instance at={"orders": 43}.')


def check_names(names: object) -> None:
    """Refuse what is no list of names; one name alone would be taken for a list of letters."""
    is_list = isinstance(names, Collection) and not isinstance(names, str | bytes)
    if names is not None and not (is_list and all(isinstance(name, str) for name in names)):  # type: ignore[attr-defined]
        text = f"names is a list of stream tables, not {names!r}."
        raise DefinitionError("BAD_OPTION", text, hint='For instance ["daily", "weekly"].')


def check_workers(workers: object) -> None:
    """Refuse a number of workers that is none."""
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        text = f"workers is a whole number of at least 1, not {workers!r}."
        raise DefinitionError("BAD_OPTION", text, hint="Two or three keep a driver busy.")
