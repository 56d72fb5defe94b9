"""Who reads whom, as data, as a text and as a Mermaid diagram."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from trickle.show.lineage import lineage_svg

Kind = Literal["stream", "base", "missing"]


@dataclass(frozen=True, slots=True)
class LineageTable:
    """A table of the lineage: a stream table, a base table, or a source that is no longer there."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Reading:
    """A stream table reads a source.

    Attributes:
        columns: The columns of the source that it reads; None if they are not recorded.
    """

    reader: str
    source: str
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Lineage:
    """Tables, and who reads whom."""

    tables: tuple[LineageTable, ...]
    readings: tuple[Reading, ...]

    def sources(self, name: str) -> tuple[Reading, ...]:
        """Return what a table reads."""
        return tuple(reading for reading in self.readings if reading.reader == name)

    def readers(self, name: str) -> tuple[Reading, ...]:
        """Return who reads a table."""
        return tuple(reading for reading in self.readings if reading.source == name)

    def around(self, name: str) -> Lineage:
        """Return what a table reads and who reads it, directly or not, and itself."""
        kept = {*self._closure(name, up=True), *self._closure(name, up=False)}
        return Lineage(
            tuple(table for table in self.tables if table.name in kept),
            tuple(reading for reading in self.readings if reading.reader in kept and reading.source in kept),
        )

    def _closure(self, name: str, *, up: bool) -> set[str]:
        found, queue = {name}, [name]
        while queue:
            at = queue.pop()
            near = (r.source for r in self.sources(at)) if up else (r.reader for r in self.readers(at))
            new = [other for other in near if other not in found]
            found.update(new)
            queue += new
        return found

    def to_text(self) -> str:
        """Draw a tree: each table that no other reads, and below it what it reads.

        >>> shown = Lineage(
        ...     (LineageTable("totals", "stream"), LineageTable("orders", "base")),
        ...     (Reading("totals", "orders", ("day", "amount")),),
        ... )
        >>> print(shown.to_text())
        totals
        └─ orders (base): day, amount
        """
        read = {reading.source for reading in self.readings}
        roots = [t.name for t in self.tables if t.name not in read] or [t.name for t in self.tables[:1]]
        shown: set[str] = set()
        return "\n".join(line for root in roots for line in [self._label(root), *self._below(root, "", (root,), shown)])

    def _below(self, name: str, indent: str, path: tuple[str, ...], shown: set[str]) -> list[str]:
        lines: list[str] = []
        if name in shown and self.sources(name):
            return [f"{indent}└─ … as above"]
        shown.add(name)
        sources = self.sources(name)
        for place, reading in enumerate(sources, 1):
            is_last = place == len(sources)
            columns = f": {', '.join(reading.columns)}" if reading.columns else ""
            lines.append(f"{indent}{'└─' if is_last else '├─'} {self._label(reading.source)}{columns}")
            if reading.source not in path:
                deeper = indent + ("   " if is_last else "│  ")
                lines += self._below(reading.source, deeper, (*path, reading.source), shown)
        return lines

    def _label(self, name: str) -> str:
        kind = next((table.kind for table in self.tables if table.name == name), "missing")
        return name if kind == "stream" else f"{name} ({kind})"

    def to_svg(self) -> str:
        """Draw a picture: sources left, readers right."""
        return lineage_svg(self)

    def _repr_html_(self) -> str:
        return lineage_svg(self)

    def to_mermaid(self) -> str:
        """Write a flow chart for Mermaid: base tables as cylinders, an arrow from each source to its reader."""
        ids = {table.name: f"t{place}" for place, table in enumerate(self.tables)}
        lines = ["flowchart LR"]
        for table in self.tables:
            name = table.name.replace('"', "#quot;")
            shape = {"stream": f'["{name}"]', "base": f'[("{name}")]', "missing": f'(["{name} (missing)"])'}
            lines.append(f"    {ids[table.name]}{shape[table.kind]}")
        lines += [f"    {ids[r.source]} --> {ids[r.reader]}" for r in self.readings if _known(r, ids)]
        return "\n".join(lines)


def _known(reading: Reading, ids: Collection[str]) -> bool:
    return reading.source in ids and reading.reader in ids
