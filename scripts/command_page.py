"""Writes docs/reference/commands.md from the command line itself.

python scripts/command_page.py           # write
python scripts/command_page.py --check   # fail if the page is not what the command says
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

from pages import publish

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.md"

HEAD = """# Commands and their options

[The command `trickle`](command.md) tells how to use it: where tables are, exit codes, JSON. This page has what
`trickle COMMAND --help` says; `scripts/command_page.py` generates it. The
[options of every command](command.md#options-of-every-command) are not repeated.
"""


def page() -> str:
    """Return the page's text."""
    import typer

    from trickle.cli.app import _COMMON
    from trickle.cli.main import app

    group: Any = typer.main.get_command(app)
    return HEAD + "".join(
        _command(f"{name}", command, set(_COMMON)) for name, command in sorted(_commands(group)) if not command.hidden
    )


def _commands(group: Any, before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, command in group.commands.items():
        inner = hasattr(command, "commands")
        found += _commands(command, f"{before}{name} ") if inner else [(f"{before}{name}", command)]
    return found


def _command(name: str, command: Any, common: set[str]) -> str:
    text, _, example = inspect.cleandoc(command.help or "").replace("\b\n", "").partition("Example:")
    own = [parameter for parameter in command.params if parameter.name not in {*common, "help"}]
    parts = [f"\n## {name}\n", f"```console\n{_usage(name, own)}\n```\n", text.strip() + "\n"]
    rows = [f"| {_words(option)} | {_escaped(option.help)} |" for option in own if option.param_type_name == "option"]
    if rows:
        parts.append("\n".join(["| Option | Meaning |", "|---|---|", *rows]) + "\n")
    if example.strip():
        parts.append(f"```console\n{inspect.cleandoc(example)}\n```\n")
    return "\n".join(parts)


def _usage(name: str, own: list[Any]) -> str:
    words = [_argument(parameter) for parameter in own if parameter.param_type_name == "argument"]
    return " ".join(["trickle", name, *(["[OPTIONS]"] if len(words) < len(own) else []), *words])


def _argument(argument: Any) -> str:
    word = (argument.metavar or argument.name.upper()) + ("..." if argument.nargs == -1 else "")
    return word if argument.required else f"[{word}]"


def _words(option: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar or ('N' if isinstance(option.default, int) else 'TEXT')}"
    return ", ".join(f"`{word}{value}`" for word in [*option.opts, *option.secondary_opts])


def _escaped(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(publish(PAGE, page()))
