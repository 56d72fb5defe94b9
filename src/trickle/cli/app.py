"""What all commands share: the common options, and errors that become exit codes."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final

import typer

from trickle._version import __version__
from trickle.cli.interrupt import check_interrupts, settle_interrupt, was_interrupted, watch_interrupts
from trickle.cli.settings import Format, Settings, read_pairs
from trickle.errors import TrickleError

_USAGE_CODES: Final = frozenset(
    {
        *("BAD_NAME", "RESERVED_NAME", "UNKNOWN_TABLE", "COPY_OF_STREAM_TABLE", "BAD_OPTION", "BAD_SCHEDULE"),
        *("UNKNOWN_SOURCE", "NO_SUCH_VERSION", "NO_WAREHOUSE", "STILL_READ", "NO_CHANGE_WAITS", "SQL_SYNTAX"),
        *("NOT_A_WAREHOUSE", "NO_PROJECT", "BAD_PROJECT", "UNKNOWN_KEY", "UNKNOWN_ENVIRONMENT", "NO_FILES"),
        *("NOTHING_SELECTED", "FOLDER_TAKEN"),
    }
)
"""What is wrong with what was typed, rather than with tables."""

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130

_COMMON: Final[dict[str, Any]] = {
    "warehouse": Annotated[
        str | None,
        typer.Option(
            *("--warehouse", "-w"),
            metavar="DIR",
            help="Folder of the tables, or its URI [env TRICKLE_WAREHOUSE, else ./warehouse].",
        ),
    ],
    "master": Annotated[str | None, typer.Option(metavar="URL", help="Master of Spark [this machine].")],
    "conf": Annotated[
        list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; repeatable.")
    ],
    "project": Annotated[
        Path | None,
        typer.Option("--project", metavar="DIR", help="Folder of the project [the one that the working folder is in]."),
    ],
    "env": Annotated[
        str | None, typer.Option("--env", metavar="NAME", help="Environment of the project [env TRICKLE_ENV].")
    ],
    "format": Annotated[
        Format | None, typer.Option("--format", "-f", help="How to answer [text].", show_default=False)
    ],
    "debug": Annotated[bool, typer.Option("--debug", help="Show stack traces, and what Spark prints.")],
}
_DEFAULTS: Final = {**dict.fromkeys(_COMMON), "debug": False}

app = typer.Typer(
    name="trickle",
    help="Stream tables on Spark and Delta Lake: define them in projects, refresh them, and see how they are.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _settings(given: dict[str, Any]) -> Settings:
    try:
        conf = read_pairs(given["conf"] or (), "conf")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    place = (given["project"], given["env"])
    return Settings(given["warehouse"], given["master"], conf, given["format"], given["debug"], *place)


def _parameters(*, kind: Any = inspect.Parameter.KEYWORD_ONLY) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(name, kind, annotation=annotation, default=_DEFAULTS[name])
        for name, annotation in _COMMON.items()
    ]


def _with_common(function: Callable[..., Any], own: list[inspect.Parameter]) -> None:
    """Show the parameters of a function to typer as its own and the common ones."""
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    parameters = [context, *named, *_parameters()]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def command(body: Callable[..., int]) -> Callable[..., None]:
    """Make a command of a function: it takes the common options too, and its errors become exit codes."""
    own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]

    @functools.wraps(body)
    def run(*, context: typer.Context, **given: Any) -> None:
        common = {name: given.pop(name) for name in _COMMON}
        settings = _settings(common).over(context.obj or Settings())
        raise typer.Exit(_run(body, settings, given))

    del run.__wrapped__
    # The mark keeps the lines of the example apart.
    run.__doc__ = (body.__doc__ or "").replace("    Example:\n", "    \b\n    Example:\n")
    _with_common(run, own)
    app.command()(run)
    return run


def _run(body: Callable[..., int], settings: Settings, given: dict[str, Any]) -> int:
    import logging
    import warnings

    if not settings.debug:
        warnings.simplefilter("ignore")
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        logging.getLogger("pyspark").setLevel(logging.CRITICAL)
        logging.getLogger().addFilter(lambda _: False)  # where py4j tells of a Ctrl-C, with a trace; not those below it
    watch_interrupts()
    try:
        code = body(settings, **given)
        check_interrupts()
        return code
    except TrickleError as error:
        if was_interrupted():
            return _interrupted()
        return fail(error, settings)
    except KeyboardInterrupt:
        return _interrupted()
    except (BrokenPipeError, typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        if settings.debug:
            raise
        if was_interrupted():
            return _interrupted()
        sys.stderr.write(f"Error: {type(error).__name__}: {error}\nThis is a defect of Trickle; --debug shows where.\n")
        return FAILED


def _interrupted() -> int:
    settle_interrupt()
    sys.stderr.write("Interrupted.\n")
    return INTERRUPTED


def fail(error: TrickleError, settings: Settings, answer: Mapping[str, Any] = NOTHING) -> int:
    """Tell an error, beside what was answered before it; return the exit code."""
    _show(error, settings, answer)
    return USAGE if error.code in _USAGE_CODES else FAILED


def _show(error: TrickleError, settings: Settings, answer: Mapping[str, Any]) -> None:
    if settings.is_json:
        from trickle.cli.output import error_of, print_json

        print_json({**answer, "error": error_of(error)})
    if settings.debug:
        import traceback

        traceback.print_exception(error)
    else:
        sys.stderr.write(f"Error: {error}\n")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"trickle {__version__}")
        raise typer.Exit


def _all(*, context: typer.Context, version: bool, **given: Any) -> None:  # noqa: ARG001 - shown by its callback
    context.obj = _settings(given)


_with_common(
    _all,
    [
        inspect.Parameter(
            "version",
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")],
            default=False,
        )
    ],
)
app.callback()(_all)
