"""What the files of a project define: stream tables, views, streaming tables, and the flows that fill these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from trickle.errors import DefinitionError
from trickle.model.names import split_name
from trickle.project.config import TableWords
from trickle.project.places import Place, bad_project, placed

Kind = Literal["stream table", "view", "streaming table", "sink"]
Query = str | Callable[[], Any]
"""SQL text, or a function that gives a DataFrame or SQL text."""

Key = tuple[str, ...]
"""A name with its schema, and its catalog if it was named, in lower case."""

NO_WORDS = TableWords()


@dataclass(frozen=True, slots=True)
class Dataset:
    """Something that has a name and rows.

    Attributes:
        name: As it was written.
        kind: A view is not a table: it becomes part of the queries that read it. A streaming table is filled by flows.
        query: None for a streaming table or a sink.
        words: What was said of it beside its query.
        conf: Settings of Spark that its query is analysed with.
        schema: The columns it shall have, as DDL or a StructType; None for those of its query.
        format: How it is stored; for a sink, where it writes to.
        sink_options: Those of a sink.
        must_be_incremental: True if a query that cannot be maintained is to be refused, whatever its mode.
    """

    name: str
    kind: Kind
    place: Place
    query: Query | None = None
    words: TableWords = NO_WORDS
    conf: Mapping[str, str] = field(default_factory=dict)
    schema: Any = None
    format: str | None = None
    sink_options: Mapping[str, str] = field(default_factory=dict)
    must_be_incremental: bool = False


@dataclass(frozen=True, slots=True)
class Flow:
    """A query whose new rows are appended to a streaming table or a sink."""

    name: str
    target: str
    query: Query
    place: Place
    conf: Mapping[str, str] = field(default_factory=dict)


class Elements:
    """What a project defines, by name.

    Args:
        schema: That of names without one.
    """

    def __init__(self, schema: str = "default") -> None:
        """Start with nothing."""
        self.schema = schema
        self.datasets: dict[Key, Dataset] = {}
        self.flows: list[Flow] = []

    def key(self, name: str | tuple[str, ...]) -> Key:
        """Return the key of a name.

        Raises:
            DefinitionError: ``BAD_NAME`` or ``RESERVED_NAME``.
        """
        parts = split_name(name) if isinstance(name, str) else name
        full = parts if len(parts) > 1 else (self.schema, *parts)
        key = tuple(part.lower() for part in full)
        return key[1:] if len(key) > 2 and key[0] == "spark_catalog" else key

    def add(self, dataset: Dataset) -> None:
        """Take in a dataset.

        Raises:
            DefinitionError: ``DUPLICATE_NAME``, with both places; ``BAD_NAME``.
        """
        try:
            key = self.key(dataset.name)
        except DefinitionError as error:
            raise placed(dataset.place, error) from error
        if other := self.datasets.get(key):
            text = f"{dataset.name!r} is defined already, in {other.place}."
            raise bad_project(dataset.place, text, "Give one of them another name.", code="DUPLICATE_NAME")
        self.datasets[key] = dataset

    def set_query(self, name: str, query: Query, conf: Mapping[str, str]) -> None:
        """Set the query of a dataset that is there already."""
        key = self.key(name)
        self.datasets[key] = replace(self.datasets[key], query=query, conf=dict(conf))

    def add_flow(self, flow: Flow) -> None:
        """Take in a flow."""
        self.flows.append(flow)

    def check_flows(self) -> None:
        """Refuse a flow into nothing, and a streaming table that nothing flows into.

        Raises:
            DefinitionError: ``UNKNOWN_TARGET`` or ``NO_FLOW``.
        """
        filled = set()
        for flow in self.flows:
            target = self.datasets.get(self.key(flow.target))
            if target is None or target.kind not in ("streaming table", "sink"):
                text = (
                    f"the flow {flow.name!r} goes into {flow.target!r}, which is not a streaming table of the project."
                )
                raise bad_project(
                    flow.place, text, "Create the streaming table, or correct its name.", code="UNKNOWN_TARGET"
                )
            filled.add(self.key(flow.target))
        for key, dataset in self.datasets.items():
            if dataset.kind == "streaming table" and key not in filled:
                text = f"nothing flows into the streaming table {dataset.name!r}."
                raise bad_project(dataset.place, text, "Give it a query, or a flow.", code="NO_FLOW")

    def of_kind(self, *kinds: Kind) -> dict[Key, Dataset]:
        """Return the datasets of some kinds."""
        return {key: dataset for key, dataset in self.datasets.items() if dataset.kind in kinds}

    def flows_into(self, key: Key) -> list[Flow]:
        """Return the flows that fill a streaming table or a sink."""
        return [flow for flow in self.flows if self.key(flow.target) == key]
