"""Report of an import: what was read, what was left out and why."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class ImportReport:
    """Counts of an import.

    Attributes:
        understood: what was read as what, by heading, in order; more than one thing each, perhaps.
        left_out: how often something was left out, by reason.
        examples: where that happened first, by reason.
        kept: dialogues.
        returns: the lowest and the highest of them.
        files: of stored dialogues, that of the split ``train`` first.
    """

    understood: dict[str, Counter[str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    kept: int = 0
    returns: tuple[float, float] = (0.0, 0.0)
    files: list[str] = field(default_factory=list)

    def add(self, heading: str, what: str, count: int = 1) -> None:
        """Take down what was understood."""
        self.understood.setdefault(heading, Counter())[what] += count

    def leave_out(self, reason: str, where: Any = "", count: int = 1) -> None:
        """Take down that something was left out."""
        self.left_out[reason] += count
        self.examples.setdefault(reason, str(where))

    def nothing_left(self) -> ValueError:
        """The error of an import of which no dialogue is left, with all that was left out."""
        return ValueError(f"import: no dialogue is left of the data.\n{self.to_text()}")

    def to_text(self) -> str:
        """Some lines of text."""
        rows = [(heading, _listed(what)) for heading, what in self.understood.items()]
        for reason, count in self.left_out.most_common(12):
            example = self.examples[reason]
            rows.append(
                ("left out", f"{count:,}: {reason}" + (f" (first {example})" if example else ""))
            )
        rows.append(("kept", f"{self.kept:,} dialogues"))
        width = max(len(heading) for heading, _ in rows)
        return "\n".join(f"{heading:<{width}}  {what}" for heading, what in rows)

    def __str__(self) -> str:
        return self.to_text()


def _listed(counts: Counter[str]) -> str:
    """List the most frequent items first, with their counts above one."""
    shown = [what if count == 1 else f"{what} ({count:,})" for what, count in counts.most_common(5)]
    return ", ".join(shown + ["..."] * (len(counts) > 5))
