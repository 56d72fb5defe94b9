"""Every error Trickle raises, in one tree.

    TrickleError
    ├── DefinitionError          a name, query or option cannot be used
    │   ├── NotDifferentiableError   the query runs, but cannot be maintained incrementally
    │   └── SqlSyntaxError           a statement about stream tables cannot be read; says where
    ├── UnknownTableError        no stream table has that name
    ├── SourceError              a source cannot be read at the requested versions
    ├── ConflictError            another process changed the stream table meanwhile
    ├── CancelledError           a refresh took too long or was called off
    ├── SuspendedError           the stream table waits for a person
    ├── StateError               a stream table's contents, record or definition are not what Trickle wrote
    ├── StorageError             what tables lie on refuses, or does not answer
    ├── SparkError               Spark or a file reader failed while it worked for a verb
    └── SessionError             the Spark session cannot be used (Connect, no Delta, no Java)

Each error has a stable ``code`` (tests and callers match on it), a sentence that says what is wrong and where, and a
``hint`` that says what to do next.
"""

from __future__ import annotations


class TrickleError(Exception):
    """The base class of all errors of this package.

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
    """A name, query or option cannot be used; nothing was left behind."""


class NotDifferentiableError(DefinitionError):
    """The query runs, but cannot be maintained incrementally."""


class SqlSyntaxError(DefinitionError):
    """A statement about stream tables cannot be read.

    Attributes:
        line: The line of the place, from 1.
        column: Its column, from 1.
    """

    def __init__(self, code: str, message: str, *, hint: str = "", line: int = 1, column: int = 1) -> None:
        """Build the text; the hint stands below the line that the message shows."""
        super().__init__(code, message, hint=hint)
        self.line = line
        self.column = column
        self.args = (f"[{code}] {message}" + (f"\n{hint}" if hint else ""),)


class UnknownTableError(TrickleError):
    """No stream table has that name."""


class SourceError(TrickleError):
    """A source cannot be read at the requested versions."""


class ConflictError(TrickleError):
    """Another writer committed to the stream table while this refresh was running."""


class CancelledError(TrickleError):
    """A refresh took longer than it may, or was called off; nothing was committed."""


class SuspendedError(TrickleError):
    """The stream table waits for a person, and is not refreshed until then."""


class StateError(TrickleError):
    """A stream table's contents, record or definition are not what Trickle last wrote."""


class StorageError(TrickleError, OSError):
    """What tables lie on refuses, or does not answer: a bucket that is not there, refused credentials, a network."""


class SparkError(TrickleError):
    """Spark or a file reader failed while it worked for a verb.

    The ``code`` is Spark's own error condition if there is one, e.g. ``DIVIDE_BY_ZERO``; its error is the ``__cause__``.
    """


class SessionError(TrickleError):
    """The Spark session cannot be used."""


def kind_of(value: object) -> str:
    """Name the type of a value, for a message.

    >>> kind_of(3), kind_of([])
    ('an int', 'a list')
    """
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
