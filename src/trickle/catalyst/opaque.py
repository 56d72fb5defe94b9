"""Catalyst expressions as opaque handles."""

from __future__ import annotations

import itertools
from typing import Any, Final

from trickle.algebra.expr import Opaque
from trickle.catalyst.jvm import items

_KEYS: Final = itertools.count(1)


def opaque(expr: Any) -> Opaque:
    """Wrap a Catalyst expression, under a key of its own."""
    refs = frozenset(int(a.exprId().id()) for a in items(expr.references().toSeq()))
    return Opaque(next(_KEYS), refs, expr.toString(), expr)
