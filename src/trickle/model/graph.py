"""Which stream table reads which: the order of refreshes, and what hangs on what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from trickle.errors import DefinitionError


@dataclass(frozen=True, slots=True)
class Graph:
    """Stream tables and what each reads.

    Attributes:
        reads: By stream table the names of its sources; those that are not keys are base tables.
    """

    reads: Mapping[str, tuple[str, ...]]

    @property
    def bases(self) -> frozenset[str]:
        """The tables that stream tables read and that are none themselves."""
        return frozenset(s for sources in self.reads.values() for s in sources if s not in self.reads)

    def upstream(self, names: Collection[str]) -> frozenset[str]:
        """Return some stream tables and all that they read, directly or not; no base tables.

        >>> sorted(Graph({"a": ("t",), "b": ("a",), "c": ("t",)}).upstream(["b"]))
        ['a', 'b']
        """
        return _closure(names, lambda name: (s for s in self.reads[name] if s in self.reads))

    def downstream(self, names: Collection[str]) -> frozenset[str]:
        """Return some tables and all stream tables that read them, directly or not."""
        return _closure(names, self.readers)

    def path(self, reader: str, source: str) -> tuple[str, ...]:
        """Return how a table reads another one, each name reading the next; the first alone if it does not.

        >>> Graph({"a": ("t",), "b": ("a", "u")}).path("b", "t")
        ('b', 'a', 't')
        """
        paths: dict[str, tuple[str, ...]] = {reader: (reader,)}
        queue = [reader]
        while queue:
            name = queue.pop(0)
            for following in self.reads.get(name, ()):
                if following not in paths:
                    paths[following] = (*paths[name], following)
                    queue.append(following)
        return paths.get(source, (reader,))

    def readers(self, name: str) -> tuple[str, ...]:
        """Name the stream tables that read a table directly."""
        return tuple(reader for reader, sources in self.reads.items() if name in sources)

    def waves(self, names: Collection[str] | None = None) -> tuple[tuple[str, ...], ...]:
        """Return stream tables in waves: each reads only base tables, tables that are not asked for, and earlier waves.

        >>> Graph({"a": ("t",), "b": ("a",), "c": ("t",)}).waves()
        (('a', 'c'), ('b',))

        Raises:
            DefinitionError: ``CYCLE``, with the path.
        """
        left = dict.fromkeys(sorted(self.reads if names is None else names))
        found: list[tuple[str, ...]] = []
        while left:
            wave = tuple(name for name in left if not any(s in left for s in self.reads[name]))
            if not wave:
                raise cycle(self._cycle_among(left))
            found.append(wave)
            for name in wave:
                del left[name]
        return tuple(found)

    def check(self) -> None:
        """Refuse cycles.

        Raises:
            DefinitionError: ``CYCLE``, with the path.
        """
        self.waves()

    def _cycle_among(self, names: Collection[str]) -> list[str]:
        """Follow sources among tables of which none can come first until one is met again."""
        path = [next(iter(names))]
        while True:
            following = next(s for s in self.reads[path[-1]] if s in names)
            if following in path:
                return [*path[path.index(following) :], following]
            path.append(following)


def _closure(names: Collection[str], following: Callable[[str], Iterable[str]]) -> frozenset[str]:
    found = dict.fromkeys(names)
    queue = list(found)
    while queue:
        for name in following(queue.pop()):
            if name not in found:
                found[name] = None
                queue.append(name)
    return frozenset(found)


def cycle(path: Sequence[str]) -> DefinitionError:
    """Build the error for tables that read each other: each name reads the next, and the last is the first."""
    text = f"stream tables read each other in a circle: {' reads '.join(path)}."
    return DefinitionError("CYCLE", text, hint="Let one of them read its sources directly.")
