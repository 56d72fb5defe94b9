"""One titled golden case, and how it is written as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trickle.algebra.render import render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trickle.algebra.plan import Plan


@dataclass(frozen=True)
class Case:
    """What a law or a pass makes of a plan.

    Attributes:
        title: What happens, in a sentence.
        before: The plan.
        after: The result; of several plans, each with what it is.
        fires: False if the plan is to stay as it is.
        means: What the result must mean over rows: the change of the plan, the same as the plan, or nothing that can be told
            without a stored state.
    """

    title: str
    before: Plan
    after: Plan | Mapping[str, Plan]
    fires: bool = True
    means: str = "same"

    @property
    def text(self) -> str:
        """The case as it stands in its file."""
        lines = [f"# {self.title}", render(self.before), "=>"]
        if isinstance(self.after, dict):
            for name, plan in self.after.items():
                lines += [f"{name}:", render(plan, indent=1)]
        else:
            lines.append(render(self.after))
        return with_plain_ids("\n".join(lines))


def with_plain_ids(text: str) -> str:
    """Number the ids of columns in the order in which a text names them; the weight needs none.

    >>> with_plain_ids("Project [a~94 AS b~95, __weight~1] over a~94")
    'Project [a~1 AS b~2, __weight] over a~1'
    """
    numbers: dict[str, int] = {}

    def plain(found: re.Match[str]) -> str:
        return f"~{numbers.setdefault(found[1], len(numbers) + 1)}"

    return re.sub(r"~(\d+)", plain, text.replace("__weight~1", "__weight"))
