"""What every command is told: where the tables are, what Spark is started with, how to answer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trickle.errors import SessionError
from trickle.layout import DEFAULT, is_remote, warehouse_location
from trickle.project.find import find_project, named_project, no_project

if TYPE_CHECKING:
    from trickle.project.load import Project

WAREHOUSE_VARIABLE: Final = "TRICKLE_WAREHOUSE"
DEFAULT_WAREHOUSE: Final = "warehouse"


class Format(StrEnum):
    """How a command answers."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Settings:
    """The options that all commands share.

    Attributes:
        warehouse: The folder of the tables or its URI, as given; None if it was not.
        master: Spark's master; None for this machine.
        conf: More Spark settings.
        format: How to answer; None if it was not said.
        debug: Whether to show stack traces and what Spark prints.
        project_path: The folder or file of a project; None for the one that the working folder lies in, if any.
        environment: That of the project; None for the one of TRICKLE_ENV, if it is set.
    """

    warehouse: str | None = None
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    format: Format | None = None
    debug: bool = False
    project_path: Path | None = None
    environment: str | None = None

    @property
    def is_json(self) -> bool:
        """Whether the answer is JSON."""
        return self.format is Format.JSON

    def over(self, other: Settings) -> Settings:
        """Return these settings, with another's where these say nothing."""
        return Settings(
            self.warehouse or other.warehouse,
            self.master or other.master,
            {**other.conf, **self.conf},
            self.format or other.format,
            self.debug or other.debug,
            self.project_path or other.project_path,
            self.environment or other.environment,
        )

    @property
    def project(self) -> Project | None:
        """The project that the command is called in, None if it is none.

        Raises:
            DefinitionError: What is wrong with its file, with the place.
        """
        if self.project_path is not None:
            return _project(named_project(self.project_path.expanduser().absolute()), self.environment)
        found = find_project(Path.cwd())
        return None if found is None else _project(found, self.environment)

    def need_project(self) -> Project:
        """Return the project.

        Raises:
            DefinitionError: ``NO_PROJECT``.
        """
        project = self.project
        if project is None:
            raise no_project(f"no trickle.yml is in {Path.cwd()} or a folder above.")
        return project

    @property
    def schema(self) -> str:
        """The schema of names without one."""
        return DEFAULT if self.project is None else self.project.schema

    @property
    def spark_settings(self) -> dict[str, str]:
        """The settings of Spark: those of the command over those of the project."""
        return {**({} if self.project is None else self.project.config.spark), **self.conf}

    @property
    def has_own_session(self) -> bool:
        """Whether the tables are those of a session of one's own: its settings were given, and no folder."""
        has_catalog = self.project is not None and self.project.config.catalog is not None
        return self._asked_folder() is None and (has_catalog or bool(self.master or self.conf))

    def folder(self, *, may_be_new: bool = False) -> str:
        """Return the folder of the tables, or its URI.

        Args:
            may_be_new: True if one that is not there is to be made; False refuses it.

        Raises:
            SessionError: ``NO_WAREHOUSE`` or ``NOT_A_WAREHOUSE``.
        """
        asked = self._asked_folder()
        if asked is None:
            text = f"no warehouse is given, and there is no folder ./{DEFAULT_WAREHOUSE}."
            hint = f"Use --warehouse DIR, or set {WAREHOUSE_VARIABLE}."
            raise SessionError("NO_WAREHOUSE", text, hint=hint)
        if is_remote(asked):
            return asked
        _check_warehouse(Path(asked))
        if not Path(asked).is_dir() and not may_be_new:
            text = f"there is no warehouse folder {asked}."
            hint = "Check the path; trickle apply makes that of a project, and trickle.local_session(…) any."
            raise SessionError("NO_WAREHOUSE", text, hint=hint)
        return asked

    def _asked_folder(self) -> str | None:
        named = self.warehouse or os.environ.get(WAREHOUSE_VARIABLE)
        if named:
            return warehouse_location(named)
        if self.project is not None:
            return None if self.project.warehouse is None else warehouse_location(self.project.warehouse)
        default = Path(DEFAULT_WAREHOUSE)
        return warehouse_location(default) if default.is_dir() and not (self.master or self.conf) else None


@lru_cache(maxsize=4)
def _project(file: Path, environment: str | None) -> Project:
    from trickle.project.load import open_project

    return open_project(file, environment)


def _check_warehouse(folder: Path) -> None:
    """Refuse what is not a folder of tables."""
    what, hint = "", "Name the folder that the folders of the tables lie in."
    if folder.exists() and not folder.is_dir():
        what = "a file"
    elif (folder / "_delta_log").is_dir():
        what, hint = "a Delta table itself", f"Name the folder above it, {folder.parent}."
    elif folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK):
        what, hint = "a folder that you may not read", "Ask its owner for the right, or name another one."
    if what:
        raise SessionError("NOT_A_WAREHOUSE", f"{folder} is not a warehouse, but {what}.", hint=hint)


def read_pairs(pairs: Sequence[str], what: str) -> dict[str, str]:
    """Read ``key=value`` pairs.

    >>> read_pairs(["a=1", "b=x=y"], "conf")
    {'a': '1', 'b': 'x=y'}

    Raises:
        ValueError: A pair is none.
    """
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            message = f"--{what} takes NAME=VALUE, not {pair!r}"
            raise ValueError(message)
        found[key.strip()] = value.strip()
    return found


def read_versions(pairs: Sequence[str]) -> dict[str, int] | None:
    """Read ``table=version`` pairs; None if there are none.

    >>> read_versions(["orders=43"])
    {'orders': 43}

    Raises:
        ValueError: A pair is not one, or its version is not a number.
    """
    found = {}
    for table, text in read_pairs(pairs, "at").items():
        if not text.isdecimal():
            message = f"--at takes TABLE=VERSION, and {text!r} is not a version"
            raise ValueError(message)
        found[table] = int(text)
    return found or None
