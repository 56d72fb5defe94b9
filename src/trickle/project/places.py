"""Where in a project something stands, and errors that say so."""

from __future__ import annotations

from dataclasses import dataclass

from trickle.errors import DefinitionError, SqlSyntaxError, TrickleError


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file.

    Attributes:
        file: The file, as seen from the folder of the project.
        line: From 1.
    """

    file: str
    line: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def bad_project(place: Place | str, what: str, hint: str = "", *, code: str = "BAD_PROJECT") -> DefinitionError:
    """Build the error for something in a file of a project that cannot be used."""
    return DefinitionError(code, f"{place}: {what}", hint=hint)


def placed(place: Place, error: TrickleError) -> TrickleError:
    """Return an error of the same kind and code that says in which file and line its cause stands."""
    if error.message.startswith(f"{place.file}:"):
        return error
    kind = DefinitionError if isinstance(error, SqlSyntaxError) else type(error)
    described = kind(error.code, f"{place}: {error.message}", hint=error.hint)
    described.__cause__ = error
    return described
