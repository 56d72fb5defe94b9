"""Stream tables as a user describes them: what ``apply`` is given and ``export`` writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from trickle.errors import DefinitionError, kind_of
from trickle.model.definition import Definition  # noqa: TC001 - a field of a model that is checked at run time
from trickle.model.stored import Stored
from trickle.model.table_options import TableOptionWords

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.model.definition import Mode

Action = Literal["create", "nothing", "options", "evolve", "query", "drop", "left"]


@dataclass(frozen=True, slots=True)
class Spec:
    """One stream table as it shall be.

    Attributes:
        name: Its name.
        query: SQL text, a DataFrame, a function that gives a DataFrame over what is there when it is called, or a whole
            definition that was exported.
        mode: ``auto``, ``differential`` or ``full``.
        schedule: When the loop refreshes it; None is by hand.
        options: See ``TableOptions``.
        reads: The stream tables of the set that it reads, where a function gives its query: a text tells itself.
        awaits: True if it reads what will be there only when the set is applied: it is not looked at before.
    """

    name: str
    query: str | DataFrame | Definition | Callable[[], DataFrame]
    mode: Mode = "auto"
    schedule: str | None = None
    options: TableOptionWords = field(default_factory=TableOptionWords)
    reads: tuple[str, ...] = ()
    awaits: bool = False


@dataclass(frozen=True, slots=True)
class ApplyStep:
    """What becomes of one stream table.

    Attributes:
        action: ``create``, ``nothing``, ``options`` (changed in place), ``evolve`` (the rows of another query, made of the
            stored ones), ``query`` (those of another query, computed from its sources),
            ``drop``, or ``left`` (it is not in the set, and stays).
        why: The action in words.
        seconds: What it is estimated to take, from the last full refresh; None if that is not known.
    """

    name: str
    action: Action
    why: str
    seconds: float | None = None

    def __str__(self) -> str:
        cost = "" if self.seconds is None else f", about {self.seconds:.1f} s"
        return f"{self.action:8} {self.name}: {self.why}{cost}"


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    """What ``apply`` does, in order.

    Attributes:
        is_applied: False for a dry run.
    """

    steps: tuple[ApplyStep, ...]
    is_applied: bool = False

    @property
    def changes(self) -> tuple[ApplyStep, ...]:
        """The steps that change anything."""
        return tuple(step for step in self.steps if step.action not in ("nothing", "left"))

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps)) or "there is nothing to apply"


class _Exported(Stored):
    name: str
    definition: Definition


class _Export(Stored):
    format: Literal[1] = 1
    stream_tables: tuple[_Exported, ...]


def write_specs(definitions: Sequence[tuple[str, Definition]]) -> str:
    """Write definitions as JSON that ``read_specs`` reads back."""
    tables = [{"name": name, "definition": d.model_dump(exclude={"generation"})} for name, d in definitions]
    return json.dumps({"format": 1, "stream_tables": tables}, indent=2, ensure_ascii=False)


def read_specs(given: object) -> tuple[Spec, ...]:
    """Read a set of definitions: specs, queries by name, or exported text.

    Raises:
        DefinitionError: ``BAD_DEFINITIONS``, it is none of these; ``DUPLICATE_NAME``.
    """
    specs = tuple(_read(given))
    seen: set[str] = set()
    for spec in specs:
        if spec.name in seen:
            text = f"the set defines stream table '{spec.name}' twice."
            raise DefinitionError("DUPLICATE_NAME", text, hint="Give each name once.")
        seen.add(spec.name)
    return specs


def _read(given: object) -> Sequence[Spec]:
    if isinstance(given, str):
        try:
            exported = _Export.model_validate_json(given).stream_tables
        except ValidationError as error:
            raise _bad(f"a text that export() did not write: {error.errors()[0]['msg']}") from error
        found = [(table.name, table.definition) for table in exported]
        return [Spec(name, d, d.mode, d.schedule, _words(d)) for name, d in found]
    if isinstance(given, Mapping):
        return [_spec(name, query) for name, query in given.items()]
    if isinstance(given, Sequence) and all(isinstance(spec, Spec) for spec in given):
        return given
    raise _bad(kind_of(given))


def _spec(name: object, query: Any) -> Spec:
    if not isinstance(name, str):
        raise _bad(f"a mapping with the name {name!r}")
    return query if isinstance(query, Spec) else Spec(name, query)


def _words(definition: Definition) -> TableOptionWords:
    words: Any = definition.options.model_dump(exclude_defaults=True)
    return words  # type: ignore[no-any-return]


def _bad(what: str) -> DefinitionError:
    hint = "Give {name: query}, a list of Spec(name, query, …), or the text of export()."
    return DefinitionError("BAD_DEFINITIONS", f"a set of definitions cannot be {what}.", hint=hint)
