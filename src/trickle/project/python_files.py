"""Python files of a project: run once, with what they decorate gathered."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from trickle.errors import TrickleError
from trickle.project.config import TableWords
from trickle.project.decorator import Decorated, registering
from trickle.project.elements import Dataset, Elements
from trickle.project.places import Place, bad_project
from trickle.project.yaml_lines import Yaml, validate

if TYPE_CHECKING:
    from collections.abc import Iterator

BAD_PYTHON: Final = "BAD_PYTHON"


class _Gathered:
    """Takes in what one file decorates."""

    def __init__(self, elements: Elements, file: str) -> None:
        self._elements = elements
        self._file = file

    def register(self, decorated: Decorated) -> None:
        place = Place(self._file, decorated.line)
        words = validate(Yaml(self._file, decorated.words, {(): decorated.line}), TableWords)
        self._elements.add(Dataset(decorated.name, "stream table", place, decorated.function, words))


def read_python(file: Path, shown: str, elements: Elements, spark: Any) -> None:
    """Run a file and take in what it defines.

    Raises:
        DefinitionError: ``BAD_PYTHON``, it fails, with the line; or what is wrong with what it defines.
    """
    with ExitStack() as stack:
        stack.enter_context(registering(_Gathered(elements, shown)))
        if importlib.util.find_spec("pyspark") is not None and spark is not None:
            from trickle.project.pipelines import registering_pipelines

            stack.enter_context(registering_pipelines(elements, shown))
        run_file(file, shown, spark)


def run_file(file: Path, shown: str, spark: Any) -> None:
    """Run a file as a module of its own, in which ``spark`` is the session.

    Raises:
        DefinitionError: ``BAD_PYTHON``.
    """
    module = ModuleType(f"trickle_project_{abs(hash(shown)):x}")
    module.__file__ = str(file)
    module.__dict__["spark"] = spark
    try:
        code = compile(file.read_bytes(), str(file), "exec")
        with _known(module):
            exec(code, module.__dict__)
    except TrickleError:
        raise
    except SyntaxError as error:
        raise bad_project(
            Place(shown, error.lineno or 1), f"this is not Python: {error.msg}.", code=BAD_PYTHON
        ) from error
    except (Exception, SystemExit) as error:
        raise python_failed(error, file, shown) from error


@contextmanager
def _known(module: ModuleType) -> Iterator[None]:
    """Let a module be found by its name while it runs, and no longer: its functions are pickled by value then."""
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        del sys.modules[module.__name__]


def python_failed(error: BaseException, file: Path, shown: str, line: int = 1) -> TrickleError:
    """Build the error for what a file raised, with the last line of the file that was reached."""
    frames = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    text = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
    place = Place(shown, (frames[-1] if frames else None) or line)
    return bad_project(place, text, "Correct the file; --debug shows the whole error.", code=BAD_PYTHON)
