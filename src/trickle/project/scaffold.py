"""Makes new projects."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from trickle.errors import DefinitionError
from trickle.project.example_data import make_data
from trickle.project.find import FILE

_EXAMPLE: Final = Path(__file__).with_name("example")
_NAME: Final = "NAME"
_TEMPLATE: Final = ".txt"
"""Ends the names of Python files that are not modules of this package."""


def make_project(folder: Path, *, with_example: bool = True, orders: int = 5000) -> list[str]:
    """Make a project in a folder; return the names of its files. All of it is made, or nothing.

    Raises:
        DefinitionError: ``FOLDER_TAKEN``.
    """
    folder = folder.expanduser().absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        text = f"{folder} is there already, and is not an empty folder."
        raise DefinitionError("FOLDER_TAKEN", text, hint="Choose another name, or remove it first.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as beside:
            made = Path(beside, "project")
            _write(made, folder.name, with_example=with_example)
            if with_example:
                make_data(made / "warehouse", orders)
            if folder.exists():
                folder.rmdir()
            made.rename(folder)
    except OSError as error:
        text = f"{folder} cannot be made: {error.strerror}."
        raise DefinitionError("FOLDER_TAKEN", text, hint="Choose a place where you may write.") from error
    return sorted(path.relative_to(folder).as_posix() for path in _files(folder))


def _write(folder: Path, name: str, *, with_example: bool) -> None:
    for file in _files(_EXAMPLE):
        path = folder / file.relative_to(_EXAMPLE).as_posix().removesuffix(_TEMPLATE)
        if with_example or path.name == FILE:
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, path)
            if path.suffix in (".yml", ".md"):
                path.write_text(path.read_text(encoding="utf-8").replace(_NAME, name), encoding="utf-8")
    (folder / "tables").mkdir(exist_ok=True)


def _files(folder: Path) -> list[Path]:
    hidden = {"__pycache__", "warehouse"}
    return [path for path in folder.rglob("*") if path.is_file() and not hidden & set(path.relative_to(folder).parts)]
