"""HTML as values: text is escaped when it goes in, so that nothing is escaped twice or never."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_CELL: Final = "text-align: {side}; vertical-align: top; padding: 2px 12px 2px 0; border: none;"
_HEADING: Final = "opacity: 0.7; font-weight: 600;"
_COLOURS: Final = {
    **dict.fromkeys(("ok", "differential", "equal", "created"), "#2e7d32"),
    **dict.fromkeys(("behind", "full", "no_data", "skipped"), "#9a6700"),
    **dict.fromkeys(("late", "failed", "broken", "an error", "different"), "#c62828"),
    "suspended": "#8e24aa",
}


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *children: object, **attributes: object) -> Html:
    """Return an element; children that are not HTML are escaped, attributes that are None left out.

    >>> tag("b", "a < b", title='"x"')
    '<b title="&quot;x&quot;">a &lt; b</b>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>{join(children)}</{name}>")


def join(parts: Iterable[object]) -> Html:
    """Return parts one after the other; what is not HTML is escaped."""
    return Html("".join(part if isinstance(part, Html) else escape(str(part)) for part in parts if part is not None))


def card(title: object, *parts: object) -> Html:
    """Return a titled block."""
    heading = tag("div", title, style="font-weight: 600; margin-bottom: 4px;")
    return tag("div", heading, *parts, style="font-size: 13px; line-height: 1.45; margin: 4px 0;")


def badge(word: str) -> Html:
    """Return a word in the colour of what it means."""
    colour = _COLOURS.get(word, "#546e7a")
    style = f"background: {colour}; color: white; border-radius: 8px; padding: 1px 8px; font-size: 12px; white-space: nowrap;"
    return tag("span", word, style=style)


def code(text: str) -> Html:
    """Return text as it was written, with its lines."""
    return tag("pre", text, style="margin: 2px 0; white-space: pre-wrap; text-align: left;")


def grid(headings: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()) -> Html:
    """Return a table; None is an empty cell."""
    sides = ["right" if heading in right else "left" for heading in headings]
    heads = [
        tag("th", heading, style=_CELL.format(side=side) + _HEADING)
        for heading, side in zip(headings, sides, strict=True)
    ]
    lines = [
        tag("tr", *(tag("td", cell, style=_CELL.format(side=side)) for cell, side in zip(row, sides, strict=True)))
        for row in rows
    ]
    head = tag("thead", tag("tr", *heads)) if any(headings) else None
    return tag("table", head, tag("tbody", *lines), style="border-collapse: collapse; font-size: 13px;")


def facts(pairs: Iterable[tuple[str, object]]) -> Html:
    """Return names and values; those without a value are left out."""
    shown = [(tag("span", name, style=_HEADING), value) for name, value in pairs if value not in (None, "")]
    return grid(("", ""), shown)


def duration(seconds: float | None) -> str:
    """Write a duration in its two biggest units.

    >>> duration(0.25), duration(75), duration(90_061), duration(None)
    ('0.25 s', '1m15s', '1d1h', '')
    """
    if seconds is None:
        return ""
    return f"{seconds:.2f} s" if seconds < 10 else long_duration(seconds)


def long_duration(seconds: float) -> str:
    """Write a duration of at least a second in its two biggest units.

    >>> long_duration(75), long_duration(90_061)
    ('1m15s', '1d1h')
    """
    left = round(seconds)
    words: list[str] = []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count or words:
            words.append(f"{count}{unit}" if count else "")
    return "".join(words[:2])


def moment(time: datetime | None) -> str:
    """Write a moment in UTC, to the second."""
    return "" if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def count(number: int | None) -> str:
    """Write a number with thousands apart."""
    return "" if number is None else f"{number:,}"


def counted(number: int, one: str, many: str = "") -> str:
    """Write how many things there are.

    >>> counted(1, "row"), counted(1200, "row"), counted(0, "refresh", "refreshes")
    ('1 row', '1,200 rows', '0 refreshes')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
