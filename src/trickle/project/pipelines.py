"""What the decorators of Spark Declarative Pipelines define, as elements of a project."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.pipelines.graph_element_registry import GraphElementRegistry, graph_element_registration_context
from pyspark.pipelines.output import MaterializedView, Output, Sink, StreamingTable, Table, TemporaryView

from trickle.project.config import TableWords
from trickle.project.elements import Dataset, Elements, Flow
from trickle.project.places import Place, bad_project
from trickle.project.sql_files import read_sql
from trickle.project.yaml_lines import Yaml, validate
from trickle.sql.meaning import split_properties

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.pipelines.flow import Flow as PipelineFlow

    from trickle.project.elements import Kind

_KINDS: Final[dict[type[Output], Kind]] = {
    MaterializedView: "stream table",
    StreamingTable: "streaming table",
    TemporaryView: "view",
    Sink: "sink",
}
_STORED: Final = (None, "delta")


class _Registry(GraphElementRegistry):
    """Takes in what one file defines; queries come as flows after the outputs that they fill."""

    def __init__(self, elements: Elements, file: str) -> None:
        self._elements = elements
        self._file = file

    def register_output(self, output: Output) -> None:
        place = self._place(output)
        kind = _KINDS[type(output)]
        if isinstance(output, Sink):
            made = Dataset(output.name, kind, place, format=output.format, sink_options=dict(output.options))
        elif isinstance(output, Table):
            if kind == "stream table" and output.format not in _STORED:
                hint = "Leave the format out: a stream table is a Delta table, whose changes others can read."
                raise bad_project(place, f"{output.name!r} has the format {output.format!r}.", hint, code="BAD_FORMAT")
            made = Dataset(
                output.name, kind, place, words=_words(output, place), schema=output.schema, format=output.format
            )
        else:
            made = Dataset(output.name, kind, place)
        self._elements.add(made)

    def register_flow(self, flow: PipelineFlow) -> None:
        elements, place = self._elements, self._place(flow)
        target = elements.datasets.get(elements.key(flow.target))
        if target is not None and target.kind in ("stream table", "view") and target.place.file == self._file:
            elements.set_query(flow.target, flow.func, flow.spark_conf)
        else:
            elements.add_flow(Flow(flow.name, flow.target, flow.func, place, dict(flow.spark_conf)))

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        read_sql(sql_text, str(file_path), self._elements)

    def _place(self, of: Output | PipelineFlow) -> Place:
        location: Any = of.source_code_location
        return Place(self._file, location.line_number or 1)


def _words(output: Table, place: Place) -> TableWords:
    own, properties = split_properties(dict(output.table_properties))
    if "trickle.schedule" in properties:
        own["schedule"] = properties.pop("trickle.schedule")
    said = {
        "comment": output.comment,
        "partition_by": output.partition_cols,
        "cluster_by": output.cluster_by,
        "properties": properties or None,
        **own,
    }
    words = {key: value for key, value in said.items() if value is not None}
    return validate(Yaml(place.file, words, {(): place.line}), TableWords)


@contextmanager
def registering_pipelines(elements: Elements, file: str) -> Iterator[None]:
    """Let what the decorators define meanwhile be gathered."""
    with graph_element_registration_context(_Registry(elements, file)):
        yield
