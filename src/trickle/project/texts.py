"""Queries with the views that they read."""

from __future__ import annotations

from collections.abc import Mapping

from trickle.model.names import quote
from trickle.sql.tokens import read_tokens


def with_views(text: str, views: Mapping[str, str]) -> str:
    """Put the queries of views in front of a query that reads them, each after those that it reads.

    >>> print(with_views("SELECT * FROM v", {"v": "SELECT 1"}))
    WITH `v` AS (
    SELECT 1
    )
    SELECT * FROM v
    """
    if not views:
        return text
    heads = ",\n".join(f"{quote(name)} AS (\n{query}\n)" for name, query in views.items())
    first = next(read_tokens(text))
    body = f"(\n{text}\n)" if first.is_word("WITH") else text
    return f"WITH {heads}\n{body}"
