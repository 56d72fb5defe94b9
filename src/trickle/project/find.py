"""Finds the project that a folder lies in; imports nothing that takes time."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from trickle.errors import DefinitionError
from trickle.project.places import bad_project

FILE: Final = "trickle.yml"
PIPELINE_FILES: Final = ("spark-pipeline.yml", "spark-pipeline.yaml")
"""What a project of Spark Declarative Pipelines is described in."""


def find_project(start: Path) -> Path | None:
    """Return the file that describes the project that a folder lies in, None if it lies in none.

    Raises:
        DefinitionError: ``BAD_PROJECT``, a folder has two of them.
    """
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return folder / FILE
        if found := [folder / name for name in PIPELINE_FILES if (folder / name).is_file()]:
            if len(found) > 1:
                raise bad_project(str(folder), f"there are both {' and '.join(PIPELINE_FILES)}.", "Keep one of them.")
            return found[0]
    return None


def named_project(path: Path) -> Path:
    """Return the file of the project that was asked for by its folder or its file.

    Raises:
        DefinitionError: ``NO_PROJECT``.
    """
    files = (path, *(path / name for name in (FILE, *PIPELINE_FILES)))
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        raise no_project(f"there is no {FILE} in {path}.")
    return found


def no_project(what: str) -> DefinitionError:
    """Build the error for a command that needs a project."""
    hint = "Go to the folder of a project, name it with --project DIR, or make one with trickle init NAME."
    return DefinitionError("NO_PROJECT", what, hint=hint)
