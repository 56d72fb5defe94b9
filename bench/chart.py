"""The picture: how many times faster each query is refreshed by its changes, a bar per run, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

WIDTH: Final = 960
HEIGHT: Final = 400
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 56, 40
COLOURS: Final = ("#2563a8", "#e08a1e", "#3f8f5b", "#9b4f96", "#7a7a7a", "#c0392b")
TICKS: Final = tuple(step * 10.0**power for power in range(-2, 5) for step in (1, 2, 5))
FONT: Final = "font-family='Helvetica, Arial, sans-serif'"


def bar_chart(title: str, series: Mapping[str, Mapping[str, float | None]]) -> str:
    """Draw ratios: for each series (a run) a ratio for each name (a query); None leaves a gap.

    Bars stand on the line of 1 ×; those of slower queries hang below it.
    """
    names = list(dict.fromkeys(name for ratios in series.values() for name in ratios))
    low, high = bounds([value for ratios in series.values() for value in ratios.values() if value])
    slot = (WIDTH - LEFT - RIGHT) / max(1, len(names))
    width = slot * 0.76 / max(1, len(series))
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}' role='img'>",
        f"<title>{escape(title)}</title>",
        f"<rect width='{WIDTH}' height='{HEIGHT}' fill='white'/>",
        f"<text x='{LEFT}' y='22' {FONT} font-size='15' font-weight='bold' fill='#222'>{escape(title)}</text>",
        *_legend(list(series)),
        *_grid(low, high),
    ]
    for place, (label, ratios) in enumerate(series.items()):
        for at, name in enumerate(names):
            if value := ratios.get(name):
                x = LEFT + at * slot + slot * 0.12 + place * width
                parts.append(_bar(x, width, value, low, high, COLOURS[place % len(COLOURS)], f"{name}, {label}"))
    line = _height(1, low, high)
    parts.append(
        f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{line:.1f}' y2='{line:.1f}' stroke='#222' stroke-width='1.5'/>"
    )
    parts += [_text(LEFT + (at + 0.5) * slot, HEIGHT - 16, name, "middle") for at, name in enumerate(names)]
    return "\n".join([*parts, "</svg>", ""])


def bounds(values: Sequence[float]) -> tuple[float, float]:
    """Return the ticks around the values and 1.

    >>> bounds([0.7, 14.0])
    (0.5, 20.0)
    """
    lowest, highest = min([*values, 0.99]), max([*values, 1.01])
    return max(tick for tick in TICKS if tick <= lowest), min(tick for tick in TICKS if tick >= highest)


def _height(value: float, low: float, high: float) -> float:
    share = math.log(value / low) / math.log(high / low)
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _bar(x: float, width: float, value: float, low: float, high: float, colour: str, what: str) -> str:
    ends = sorted((_height(1, low, high), _height(value, low, high)))
    return (
        f"<rect x='{x:.1f}' y='{ends[0]:.1f}' width='{width:.1f}' height='{max(1.0, ends[1] - ends[0]):.1f}' fill='{colour}'>"
        f"<title>{escape(what)}: {value:.2f} ×</title></rect>"
    )


def _grid(low: float, high: float) -> list[str]:
    parts = []
    for tick in TICKS:
        if low <= tick <= high:
            y = _height(tick, low, high)
            parts.append(f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{y:.1f}' y2='{y:.1f}' stroke='#ddd'/>")
            parts.append(_text(LEFT - 8, y + 4, f"{tick:g} ×", "end"))
    return parts


def _legend(labels: Sequence[str]) -> list[str]:
    parts = []
    x = float(LEFT)
    for place, label in enumerate(labels):
        parts.append(f"<rect x='{x:.0f}' y='33' width='11' height='11' fill='{COLOURS[place % len(COLOURS)]}'/>")
        parts.append(_text(x + 16, 43, label, "start"))
        x += 40 + 7 * len(label)
    return parts


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' {FONT} font-size='12' text-anchor='{anchor}' fill='#444'>{escape(text)}</text>"
    )
