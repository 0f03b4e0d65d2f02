"""Small drawings as SVG, to stand in a page: intervals and learning curves."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

import numpy as np

from dialgym.experiments.curves import Curve, smooth
from dialgym.experiments.statistics import Estimate

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 96, 12, 34
MOST_POINTS = 400
"""Of a drawn curve; more would only make the file larger."""


def draw_intervals(estimates: Sequence[Estimate]) -> list[str]:
    """Each figure as a dot on the line of its interval, all within one span."""
    ends = [end for e in estimates for end in (e.interval if e.is_bounded else (e.value,))]
    span = min(ends), max(ends)
    return [
        draw_interval(e.value, *(e.interval if e.is_bounded else (e.value, e.value)), span)
        for e in estimates
    ]


def draw_interval(value: float, low: float, high: float, span: tuple[float, float]) -> str:
    """A dot on the line of its interval, within the span of all that are drawn below each other."""
    size = (span[1] - span[0]) or 1.0

    def x(at: float) -> float:
        return 4 + 112 * (at - span[0]) / size

    return (
        '<svg class="interval" viewBox="0 0 120 14" width="120" height="14" aria-hidden="true">'
        f'<line x1="4" y1="7" x2="116" y2="7" class="faint"/>'
        f'<line x1="{x(low):.1f}" y1="7" x2="{x(high):.1f}" y2="7" class="thick"/>'
        f'<circle cx="{x(value):.1f}" cy="7" r="3.5"/></svg>'
    )


def draw_curves(curves: Sequence[Curve]) -> str:
    """Mean return against environment steps, with dashed lines at the references."""
    values = [v for curve in curves for v in (*curve.returns, *curve.references.values())]
    low, high = min(values), max(values)
    pad = 0.06 * ((high - low) or 1.0)
    frame = _Frame(max(float(c.steps[-1]) for c in curves), low - pad, high + pad)
    parts = [*_axes(frame)]
    for name, value in curves[0].references.items():
        y = frame.y(value)
        parts.append(
            f'<line class="reference" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{WIDTH - RIGHT + 6}" y="{y + 4:.1f}">{escape(name)}</text>'
        )
    for i, curve in enumerate(curves):
        parts.append(_path(frame, curve.steps, curve.returns, f"raw c{i % 4}"))
        parts.append(_path(frame, curve.steps, smooth(curve.returns), f"line c{i % 4}"))
    return _drawing([curve.name for curve in curves], parts, "mean return while learning") + (
        '<p class="note">Mean return of the dialogues that ended while learning, against '
        "timesteps; thin: as measured, thick: smoothed. Dashed: scripted policies.</p>"
    )


def draw_profiles(at: np.ndarray, shares: Mapping[str, np.ndarray]) -> str:
    """The share of runs above each of (T,) values, (T,) from 0 to 1 by name."""
    first, last = float(at[0]), float(at[-1])
    frame = _Frame(last, 0.0, 1.0, first)
    parts = [*_axes(frame)]
    for i, values in enumerate(shares.values()):
        parts.append(_path(frame, at, values, f"line c{i % 4}"))
    return _drawing(shares, parts, "share of runs above a value")


def _drawing(names: Iterable[str], parts: Iterable[str], label: str) -> str:
    """A drawing of lines below the names of these, each in its colour."""
    keys = " ".join(
        f'<span class="key c{i % 4}">{escape(name)}</span>' for i, name in enumerate(names)
    )
    return (
        f'<p class="keys">{keys}</p><div class="scroll"><svg class="curve" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg></div>"
    )


class _Frame:
    """Positions of values in the drawing."""

    def __init__(self, last: float, low: float, high: float, first: float = 0.0) -> None:
        self.first, self.last = first, last if last > first else first + 1.0
        self.low, self.high = low, high

    def x(self, step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (step - self.first) / (self.last - self.first)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def _axes(frame: _Frame) -> Iterator[str]:
    for value in ticks(frame.low, frame.high):
        y = frame.y(value)
        yield f'<line class="faint" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="end" x="{LEFT - 8}" y="{y + 4:.1f}">{value:g}</text>'
    for step in ticks(frame.first, frame.last):
        yield (
            f'<text class="middle" x="{frame.x(step):.1f}" y="{HEIGHT - 12}">'
            f"{_thousands(step)}</text>"
        )


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two, about so many."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough)
    first = math.ceil(low / step)
    return [round(k * step, 10) for k in range(first, math.floor(high / step) + 1)]


def _thousands(step: float) -> str:
    return (
        f"{step / 1e6:g}M"
        if abs(step) >= 1e6
        else f"{step / 1e3:g}k"
        if abs(step) >= 1e3
        else f"{step:g}"
    )


def _path(frame: _Frame, steps: np.ndarray, values: np.ndarray, kind: str) -> str:
    chosen = np.unique(np.linspace(0, len(steps) - 1, MOST_POINTS).astype(int))
    points = [(f"{frame.x(steps[i]):.1f}", f"{frame.y(values[i]):.1f}") for i in chosen]
    if len(points) == 1:
        return f'<circle class="{kind}" cx="{points[0][0]}" cy="{points[0][1]}" r="4"/>'
    joined = " ".join(f"{x},{y}" for x, y in points)
    return f'<polyline class="{kind}" points="{joined}"/>'
