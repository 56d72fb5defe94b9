"""``python -m trickle`` is the command ``trickle``."""

from __future__ import annotations

from trickle.cli.main import main

main()
