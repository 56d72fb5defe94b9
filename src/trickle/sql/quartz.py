"""Quartz's cron, which Databricks writes, as a cron of five fields."""

from __future__ import annotations

import re
from typing import Final

_FIVE, _SIX, _SEVEN = 5, 6, 7
_DAY: Final = re.compile(r"(?<![/\d#])[1-7](?!\d)")


def read_quartz(text: str) -> str:
    """Return five fields of cron; Quartz's six begin with the seconds, and count the days of the week from Sunday as 1.

    >>> read_quartz("0 30 6 ? * 2-6"), read_quartz("*/5 * * * *")
    ('30 6 * * 1-5', '*/5 * * * *')

    Raises:
        ValueError: It has what cannot be said in five fields.
    """
    fields = text.split()
    if len(fields) == _FIVE:
        return " ".join(fields)
    if len(fields) not in (_SIX, _SEVEN):
        raise ValueError(f"it has {len(fields)} fields")
    seconds, minute, hour, day, month, weekday = fields[:_SIX]
    if seconds not in ("0", "00"):
        raise ValueError("it names seconds; a minute is the shortest step")
    if len(fields) == _SEVEN and fields[_SIX] != "*":
        raise ValueError("it names years")
    if odd := re.search(r"\d*[LW]|[#C]", re.sub(r"[A-Z]{3}", "", f"{day} {weekday}".upper())):
        raise ValueError(f"{odd[0]} is not known here")
    every = [("*" if field == "?" else field) for field in (day, month)]
    weekdays = "*" if weekday in ("?", "*") else _DAY.sub(lambda found: str(int(found[0]) - 1), weekday)
    return " ".join([minute, hour, *every, weekdays])
