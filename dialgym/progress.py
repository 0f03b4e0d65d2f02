"""Progress as a bar on a terminal, elsewhere as a line now and then, on the error stream."""

import time
from typing import Any, Self

FIRST, LATER = 10.0, 30.0
"""Seconds until the first line, and at least from one line to the next."""
REDRAWN = 0.1
"""Seconds from one drawing of a bar to the next."""


class Progress:
    """Context manager that shows how much of something is done.

    Left without an error, it says 100 %, even if a little less or more was done than was announced.

    Args:
        what: is being done.
        total: of it; None where nobody knows.
        unit: what is counted, such as "dialogues".
        keep: leave the bar on the terminal at the end.
        console: of rich; None for the error stream.
    """

    def __init__(
        self,
        what: str,
        total: int | None = None,
        unit: str = "",
        keep: bool = False,
        console: Any = None,
    ) -> None:
        from rich.console import Console

        self.what, self.total, self.unit = what, total, unit
        self.done, self.keep = 0, keep
        self.note = ""
        self.console = console or Console(stderr=True, highlight=False)
        self._bar: Any = None
        self._lines, self._finished = 0, False
        self._before: int | None = None  # where what goes on began this time
        self._began = self._drawn = time.monotonic()
        self._next = self._began + FIRST

    def __enter__(self) -> Self:
        self._began = self._drawn = time.monotonic()
        self._next = self._began + FIRST
        if self.console.is_terminal:
            self._bar = _bar(self.console, self.keep)
            self._task = self._bar.add_task(self.what, total=self.total, note="")
            self._bar.start()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.finish()
        elif self._bar is not None and not self._finished:
            self._draw()
            self._bar.stop()

    def finish(self) -> None:
        """All is done: the bar, or where there have been lines another one, says 100 %."""
        if self._finished:
            return
        self._finished = True
        self.done = self.done if self.total is None else self.total
        if self._bar is not None:
            self._draw()
            self._bar.stop()
        elif self._lines:
            self._say()

    def advance(self, count: int) -> None:
        """Add to how much is done."""
        self.reach(self.done + count)

    def reach(self, done: int, note: str | None = None) -> None:
        """Set how much is done in all, and the note beside it."""
        self._before = done if self._before is None else self._before
        self.done = done if self.total is None else min(done, self.total)
        self.note = self.note if note is None else note
        now = time.monotonic()
        if self._bar is not None and now - self._drawn >= REDRAWN:
            self._drawn = now
            self._draw()
        elif self._bar is None and now >= self._next:
            self._say()
            self._next = now + max(LATER, 0.1 * (now - self._began))

    def _draw(self) -> None:
        self._bar.update(self._task, completed=self.done, note=self.note)

    def _say(self) -> None:
        seconds = time.monotonic() - self._began
        parts = [f"{self.done:,} {self.unit}".rstrip()]
        if self.total:
            parts = [f"{self.done:,} of {self.total:,} {self.unit}".rstrip()]
            parts.append(f"{100 * self.done // self.total} %")
        parts += [self.note] if self.note else []
        parts.append(spell_seconds(seconds))
        new = self.done - (self._before or 0)
        if self.total and new > 0 and self.done < self.total:
            parts.append(f"{spell_seconds(seconds / new * (self.total - self.done))} left")
        line = f"{self.what}: {', '.join(parts)}"
        self.console.print(line, markup=False, emoji=False, soft_wrap=True)
        self._lines += 1


def spell_seconds(seconds: float) -> str:
    """``8.3 s``, ``4 min 12 s``, ``2 h 5 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _bar(console: Any, keep: bool) -> Any:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    name = TextColumn("{task.description}", markup=False)
    note = TextColumn("{task.fields[note]}", style="dim", markup=False)
    amounts = (TaskProgressColumn(), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
    return Bar(name, BarColumn(20), *amounts, note, console=console, transient=not keep)
