"""YAML that knows its lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from trickle.project.places import Place, bad_project

Step = str | int
_Model = TypeVar("_Model", bound=BaseModel)

_MESSAGES: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "string_type": "is a text",
    "dict_type": "is a list of NAME: VALUE pairs",
    "mapping_type": "is a list of NAME: VALUE pairs",
    "model_type": "is a list of NAME: VALUE pairs",
    "list_type": "is a list",
    "tuple_type": "is a list",
}


@dataclass(frozen=True, slots=True)
class Yaml:
    """A text of YAML as values, and the line of each of them.

    Attributes:
        lines: By the path to a value, the line where it stands.
    """

    file: str
    value: Any
    lines: Mapping[tuple[Step, ...], int]

    def place(self, path: Sequence[Step]) -> Place:
        """Return where a value stands, or what it would stand in."""
        found = next(
            (self.lines[tuple(path[:n])] for n in range(len(path), -1, -1) if tuple(path[:n]) in self.lines), 1
        )
        return Place(self.file, found)


def read_yaml(text: str, file: str, first_line: int = 1) -> Yaml:
    """Read a text of YAML.

    Raises:
        DefinitionError: ``BAD_PROJECT``, it is not YAML, or has a key twice.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        value = yaml.safe_load(text)
        lines = dict(_lines(node, (), file, first_line))
    except RecursionError as error:
        what = "this YAML contains itself, or too many brackets."
        raise bad_project(Place(file, first_line), what, "Write it without aliases.") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(file, first_line + (mark.line if mark else 0))
        hint = "Correct the YAML: a space after each colon, the same indentation for what belongs together."
        raise bad_project(place, f"this is not YAML: {error.problem or error}.", hint) from error
    except (yaml.YAMLError, ValueError) as error:  # a character or a date that cannot be
        raise bad_project(Place(file, first_line), f"this is not YAML: {' '.join(str(error).split())}.") from error
    return Yaml(file, value, lines)


def _lines(node: Any, path: tuple[Step, ...], file: str, first: int) -> Iterator[tuple[tuple[Step, ...], int]]:
    if node is None:
        return
    yield path, node.start_mark.line + first
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _lines(item, (*path, index), file, first)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, item in node.value:
            line, name = key.start_mark.line + first, str(key.value)
            if name in seen:
                raise bad_project(Place(file, line), f"{name!r} is here twice.", "Keep one of them.")
            seen.add(name)
            yield from _lines(item, (*path, name), file, first)
            yield (*path, name), line


def validate(found: Yaml, model: type[_Model]) -> _Model:
    """Check values against a model.

    Raises:
        DefinitionError: ``BAD_PROJECT`` with the place of the first fault; ``UNKNOWN_KEY``.
    """
    try:
        return model.model_validate({} if found.value is None else found.value)
    except ValidationError as error:
        raise _fault(found, model, error) from error


def _fault(found: Yaml, model: type[BaseModel], error: ValidationError) -> Exception:
    first = error.errors()[0]
    path = [step for step in first["loc"] if step != "[key]"]
    place = found.place(path)
    name = ".".join(map(str, path))
    if first["type"] == "extra_forbidden":
        known = sorted(_keys(model, path[:-1]))
        hint = f"There are {', '.join(known)}."
        return bad_project(place, f"there is no key {path[-1]!r} here.", hint, code="UNKNOWN_KEY")
    if not path and first["type"] == "value_error":
        return bad_project(place, f"{first['msg'].removeprefix('Value error, ')}.")
    if not path:
        return bad_project(
            place, "this is not a list of NAME: VALUE pairs.", f"There are {', '.join(_keys(model, ()))}."
        )
    said = _MESSAGES.get(first["type"], first["msg"].removeprefix("Value error, "))
    given = "" if first["type"] == "missing" else f", not {first.get('input')!r}"
    said = f"{name} {said}{given}." if first["type"] in _MESSAGES else f"{name}: {said.rstrip('.')}."
    return bad_project(place, said)


def _keys(model: type[BaseModel], path: Sequence[Step]) -> list[str]:
    """Name the keys of the part of a model that a path leads to."""
    inner: Any = model
    for step in path:
        field = inner.model_fields.get(str(step)) if isinstance(inner, type) and issubclass(inner, BaseModel) else None
        inner = _model_in(field.annotation) if field is not None else inner
    fields: Mapping[str, Any] = inner.model_fields
    return [field.alias or name for name, field in fields.items()]


def _model_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_model_in(argument) for argument in getattr(annotation, "__args__", ()))
    return next((found for found in inner if found is not None), None)
