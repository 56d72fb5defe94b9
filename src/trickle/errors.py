"""Every error Trickle raises, in one tree.

    TrickleError
    ├── DefinitionError          the query or the name given to create() cannot be used
    │   └── NotDifferentiableError   it can be run, but not maintained by its changes
    ├── UnknownTableError        no stream table of that name
    ├── SourceError              a source cannot be read at the versions asked for
    ├── ConflictError            another process changed the stream table meanwhile
    ├── StateError               a stream table's contents, record or definition are not what Trickle wrote
    ├── SparkError               Spark, or a reader of files, failed in what a verb asked of it
    └── SessionError             the Spark session cannot be used (Connect, no Delta, no Java)

Each carries a stable ``code`` (tests and callers match on it), the sentence that says what is wrong and where,
and a ``hint`` that says what to do next.
"""

from __future__ import annotations


class TrickleError(Exception):
    """The root of all errors of this package.

    Attributes:
        code: Stable, upper-case name of the problem.
        hint: What to do next.
    """

    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        """Build the text from the parts: ``[CODE] message hint``."""
        self.code = code
        self.message = message
        self.hint = hint
        super().__init__(f"[{code}] {message}" + (f" {hint}" if hint else ""))


class DefinitionError(TrickleError):
    """A name, query or option given to ``create`` cannot be used; nothing was left behind."""


class NotDifferentiableError(DefinitionError):
    """The query runs, but cannot be maintained by its changes."""


class UnknownTableError(TrickleError):
    """There is no stream table of that name."""


class SourceError(TrickleError):
    """A source cannot be read at the versions asked for."""


class ConflictError(TrickleError):
    """Another writer committed to the stream table while this refresh was running."""


class StateError(TrickleError):
    """A stream table's contents, record or definition are not what Trickle last wrote."""


class SparkError(TrickleError):
    """Spark, or a reader of files, failed in what a verb asked of it.

    The ``code`` is Spark's own error condition where it gives one, e.g. ``DIVIDE_BY_ZERO``; its error is the ``__cause__``.
    """


class SessionError(TrickleError):
    """The Spark session cannot be used."""
