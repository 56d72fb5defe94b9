"""Lineage as SVG: sources left, readers right; a small layered layout of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from trickle.show.html import Html, tag

if TYPE_CHECKING:
    from trickle.model.lineage import Lineage, Reading

_HEIGHT, _GAP, _BETWEEN, _MARGIN = 30, 14, 70, 8
_LETTER, _PADDING, _LONGEST = 7.3, 14, 34
_FILLS: Final = {"stream": "#4e79a7", "base": "#59a14f", "missing": "#c62828"}


def lineage_svg(lineage: Lineage) -> Html:
    """Draw who reads whom; the columns that are read show when the mouse rests on a line."""
    layers = layout(lineage)
    kinds = {table.name: table.kind for table in lineage.tables}
    widths = [max(_width(name) for name in layer) for layer in layers] or [0]
    tallest = max(map(len, layers), default=0)
    boxes: dict[str, tuple[float, float, float]] = {}
    left = float(_MARGIN)
    for layer, width in zip(layers, widths, strict=False):
        top = _MARGIN + (tallest - len(layer)) * (_HEIGHT + _GAP) / 2
        for place, name in enumerate(layer):
            boxes[name] = (left, top + place * (_HEIGHT + _GAP), width)
        left += width + _BETWEEN
    lines = [
        _line(
            boxes[reading.source],
            boxes[reading.reader],
            _title(reading),
        )
        for reading in lineage.readings
        if reading.source in boxes and reading.reader in boxes
    ]
    shapes = [_box(name, kinds[name], boxes[name]) for layer in layers for name in layer]
    size = {"width": round(left - _BETWEEN + _MARGIN), "height": round(tallest * (_HEIGHT + _GAP) - _GAP + 2 * _MARGIN)}
    label = f"Lineage of {len(lineage.tables)} tables"
    view = f"0 0 {size['width']} {size['height']}"
    return tag(
        "svg", *lines, *shapes, xmlns="http://www.w3.org/2000/svg", viewBox=view, role="img", aria_label=label, **size
    )


def layout(lineage: Lineage) -> list[list[str]]:
    """Return the tables in columns: each right of all that it reads, near the middle of them."""
    reads: dict[str, list[str]] = {table.name: [] for table in lineage.tables}
    for reading in lineage.readings:
        if reading.reader in reads and reading.source in reads:
            reads[reading.reader].append(reading.source)
    depth = _depths(reads)
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in reads:
        layers[depth[name]].append(name)
    place: dict[str, float] = {}
    for layer in layers:
        layer.sort(key=lambda name: (_middle(reads[name], place), name))
        place |= {name: at - len(layer) / 2 for at, name in enumerate(layer)}
    return layers


def _depths(reads: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the longest way down to a table that reads nothing; tables in a circle end up somewhere."""
    depth = dict.fromkeys(reads, 0)
    for _ in reads:
        deeper = {name: max((depth[source] + 1 for source in sources), default=0) for name, sources in reads.items()}
        if deeper == depth:
            break
        depth = {name: min(at, len(reads) - 1) for name, at in deeper.items()}
    used = sorted(set(depth.values()))
    return {name: used.index(at) for name, at in depth.items()}


def _middle(sources: Sequence[str], place: Mapping[str, float]) -> float:
    known = [place[source] for source in sources if source in place]
    return sum(known) / len(known) if known else 0.0


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else "…" + name[1 - _LONGEST :]


def _width(name: str) -> float:
    return len(_short(name)) * _LETTER + 2 * _PADDING


def _title(reading: Reading) -> str:
    columns = ", ".join(reading.columns) if reading.columns else "columns not recorded"
    return f"{reading.reader} reads {reading.source}: {columns}"


def _box(name: str, kind: str, box: tuple[float, float, float]) -> Html:
    x, y, width = box
    dashes = "4 3" if kind == "missing" else None
    style = {"fill": _FILLS[kind], "fill_opacity": "0.15", "stroke": _FILLS[kind], "stroke_dasharray": dashes}
    rect = tag("rect", x=f"{x:.0f}", y=f"{y:.0f}", width=f"{width:.0f}", height=_HEIGHT, rx=6, **style)
    at = {
        "x": f"{x + width / 2:.0f}",
        "y": f"{y + _HEIGHT / 2 + 4:.0f}",
        "text_anchor": "middle",
        "fill": "currentColor",
    }
    text = tag("text", _short(name), font_family="monospace", font_size=12, **at)
    return tag("g", tag("title", f"{name} ({kind})"), rect, text)


def _line(source: tuple[float, float, float], reader: tuple[float, float, float], title: str) -> Html:
    x1, y1 = source[0] + source[2], source[1] + _HEIGHT / 2
    x2, y2 = reader[0], reader[1] + _HEIGHT / 2
    bend = max(20.0, abs(x2 - x1) / 2)
    path = f"M {x1:.0f} {y1:.0f} C {x1 + bend:.0f} {y1:.0f}, {x2 - bend:.0f} {y2:.0f}, {x2:.0f} {y2:.0f}"
    return tag(
        "path",
        tag("title", title),
        d=path,
        fill="none",
        stroke="currentColor",
        stroke_opacity="0.5",
        stroke_width="1.5",
    )
