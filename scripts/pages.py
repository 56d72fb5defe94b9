"""What the scripts that generate pages have in common."""

from __future__ import annotations

import sys
from pathlib import Path


def publish(page: Path, text: str) -> int:
    """Write a page; with ``--check`` compare it instead, and give 1 if it says something else."""
    if "--check" in sys.argv:
        return 0 if page.exists() and page.read_text(encoding="utf-8") == text else 1
    page.write_text(text, encoding="utf-8")
    return 0
