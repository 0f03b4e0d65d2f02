"""Measurements as JSON and as a Markdown table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dialgym.experiments.tables import markdown_table
from dialgym.io.files import write_text

JSON, MARKDOWN = "gpu.json", "gpu.md"
COLUMNS = (
    "model",
    "weights",
    "vocabulary",
    "rollout, tokens/s",
    "update, tokens/s",
    "steps/s",
    "gradient steps/s",
    "share of the bf16 peak, %",
    "memory, GiB",
)
BESIDE = (
    "Weights are random. Tokens of an update are those that it reads, padding left out, in every "
    "epoch; a step is a token that the learner says, rollout and update together. The share is of "
    "6 operations a weight and token, those of attention left out."
)


@dataclass(frozen=True)
class Row:
    """A measurement.

    Attributes:
        name: of it.
        figures: by name, and the model's; none where it failed.
        seconds: that it took.
        error: why it has no figures; None where it has.
    """

    name: str
    figures: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    error: str | None = None


def write(out: Path, about: dict[str, Any], rows: Sequence[Row]) -> None:
    """Write both files, each at once and whole."""
    values = {**about, "rows": [asdict(row) for row in rows]}
    write_text(out / JSON, json.dumps(values, indent=1) + "\n")
    write_text(out / MARKDOWN, as_markdown(about, rows))


def as_markdown(about: dict[str, Any], rows: Sequence[Row]) -> str:
    """A table of what could be measured, and below it what could not."""
    shown = [name for name in COLUMNS if any(name in row.figures for row in rows)]
    cells = [
        [row.name, *(_cell(row.figures.get(n)) for n in shown)] for row in rows if not row.error
    ]
    table = markdown_table([["measurement", *shown], *cells])
    failed = "".join(f"- {row.name}: {row.error}\n" for row in rows if row.error)
    more = [f"{name}: {row.figures[name]:g}. " for row in rows for name in row.figures
            if name not in COLUMNS]  # fmt: skip
    head = ", ".join(f"{key} {value}" for key, value in about.items() if key != "versions")
    return f"{table}\n{failed}\n{''.join(more)}{BESIDE}\n\n{head}.\n"


def _cell(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if value >= 1e6:
        return f"{value / 1e6:,.1f}M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
