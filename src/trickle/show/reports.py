"""Reports of refreshes, runs and comparisons as HTML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from trickle.show.html import Html, badge, card, code, count, counted, duration, facts, grid, tag

if TYPE_CHECKING:
    from trickle.model.reason import Reason
    from trickle.model.report import RefreshReport, RunReport, Validation, VerifyReport

_COLOURS: Final = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#e15759", "#9c755f")
_REST: Final = "#bab0ac"
_BAR: Final = "display: flex; height: 12px; width: 100%; max-width: 560px; border-radius: 3px; overflow: hidden;"
_LEAST: Final = 0.005
"""A share of the time that is too small to be seen."""


def time_bar(steps: Mapping[str, float], seconds: float) -> Html:
    """Return a bar of where the time went, with what each step took; time of no step is ``other``."""
    rest = seconds - sum(steps.values())
    parts = [(name, took, _COLOURS[place % len(_COLOURS)]) for place, (name, took) in enumerate(steps.items())]
    if rest > _LEAST * seconds:
        parts.append(("other", rest, _REST))
    whole = sum(took for _, took, _ in parts) or 1.0
    pieces = [
        tag("div", title=f"{name}: {duration(took)}", style=f"width: {100 * took / whole:.2f}%; background: {colour};")
        for name, took, colour in parts
    ]
    bar = tag("div", *pieces, style=_BAR)
    legend = [
        tag(
            "span",
            tag("span", "■", style=f"color: {colour};"),
            f" {name} {duration(took)}",
            style="margin-right: 12px; white-space: nowrap;",
        )
        for name, took, colour in parts
    ]
    return tag("div", bar, tag("div", *legend, style="font-size: 12px;"))


def _reason(reason: Reason) -> Html:
    return tag("div", tag("b", reason.code), f": {reason.text} {reason.hint}".rstrip())


def _versions(frontier: Mapping[str, int]) -> str:
    return ", ".join(f"{name}@{version}" for name, version in frontier.items())


def refresh_report(report: RefreshReport) -> Html:
    """Return what a refresh did: mode and reason, rows, sources, and where the time went."""
    changed = ", ".join(f"{name}: {count(rows)}" for name, rows in report.changed.items())
    measured = facts(
        [
            ("mode", badge(report.mode)),
            ("because", None if report.reason is None else _reason(report.reason)),
            ("rows", f"+{count(report.rows_inserted)} −{count(report.rows_deleted)}"),
            ("change rows read", changed),
            ("sources", _versions(report.frontier)),
            ("version", count(report.version)),
            ("seconds", duration(report.seconds)),
            *(("warning", _reason(warning)) for warning in report.warnings),
        ]
    )
    return card(f"Refresh of {report.table}", measured, time_bar(report.steps, report.seconds))


def run_report(report: RunReport) -> Html:
    """Return what a run did, one line for each table."""
    rows = [(name, badge(done.mode), *_numbers(done), _notes(done)) for name, done in report.tables.items()]
    rows += [(name, badge("failed"), "", "", "", Html(code(str(error)))) for name, error in report.errors.items()]
    rows += [(name, badge("skipped"), "", "", "", str(why)) for name, why in report.skipped.items()]
    headings = ("table", "mode", "inserted", "deleted", "seconds", "note")
    took = {name: done.seconds for name, done in report.tables.items()}
    off = f"Not at the cut, or not surely: {', '.join(report.off_cut)}." if report.off_cut else None
    return card(
        f"Run over {counted(len(rows), 'stream table')} in {duration(report.seconds)}",
        grid(headings, rows, right=("inserted", "deleted", "seconds")),
        facts([("cut", _versions(report.cut))]),
        off,
        time_bar(took, max(report.seconds, sum(took.values()))),
    )


def _numbers(done: RefreshReport) -> tuple[str, str, str]:
    return f"+{count(done.rows_inserted)}", f"−{count(done.rows_deleted)}", duration(done.seconds)


def _notes(done: RefreshReport) -> str:
    return "; ".join(str(note) for note in (done.reason, *done.warnings) if note is not None)


def verify_report(report: VerifyReport) -> Html:
    """Return how a table compares with a recompute."""
    samples = [("missing", row) for row in report.missing_sample] + [("extra", row) for row in report.extra_sample]
    measured = facts(
        [
            ("result", badge("equal" if report.ok else "different")),
            ("rows compared", count(report.rows) + (f", one in {report.part} keys" if report.part > 1 else "")),
            ("missing", count(report.missing) if report.missing else None),
            ("extra", count(report.extra) if report.extra else None),
            *(("broken key", key) for key in report.broken_keys),
        ]
    )
    shown = grid(("", "row"), [(kind, code(repr(row))) for kind, row in samples]) if samples else None
    return card(f"Verification of {report.table}", measured, shown)


def validation(found: Validation) -> Html:
    """Return whether a query can be maintained, and what stands against it."""
    title = "Can be maintained by its changes" if found.differentiable else "Is recomputed at each refresh"
    return card(title, *map(_reason, found.obstacles), facts([("sources", ", ".join(found.sources))]))
