"""Failures that are known and not mended yet. They are counted, but do not fail a run. Empty is how it should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """What a known failure looks like: why it happens, and what its kind and its text or query contain."""

    why: str
    kind: str
    text: str = ""


KNOWN: Final[tuple[KnownFailure, ...]] = ()


def known(kind: str, text: str) -> str | None:
    """Say why a failure happens, if that is known."""
    return next((entry.why for entry in KNOWN if entry.kind in kind and entry.text in text), None)
