"""Progress: a bar that ends at 100 %, or lines now and then."""

import contextlib
import io

import pytest
from rich.console import Console

from dialgym import progress
from dialgym.progress import Progress, spell_seconds


class Clock:
    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(progress, "time", found)
    return found


def console(terminal=False):
    return Console(file=io.StringIO(), force_terminal=terminal, width=100, highlight=False)


def test_without_a_terminal_there_is_a_line_now_and_then(clock):
    out = console()
    with Progress("ppo", 1000, "timesteps", console=out) as shown:
        for done in range(0, 1000, 10):
            clock.now += 1
            shown.reach(done, "return -2")
    lines = out.file.getvalue().splitlines()
    assert lines[0] == "ppo: 90 of 1,000 timesteps, 9 %, return -2, 10 s, 1 min 41 s left"
    assert len(lines) == 5
    assert lines[-1].startswith("ppo: 1,000 of 1,000 timesteps, 100 %")


def test_what_goes_on_is_not_thought_to_be_faster_than_it_is(clock):
    out = console()
    with Progress("ppo", 1000, console=out) as shown:
        shown.reach(900)
        clock.now += 50
        shown.reach(950)
    assert out.file.getvalue().splitlines()[0].endswith("50 s, 50 s left")


def test_what_is_over_quickly_leaves_no_line():
    out = console()
    with Progress("ppo", 3, console=out) as shown:
        shown.advance(3)
    assert out.file.getvalue() == ""


@pytest.mark.parametrize("done", [90, 130])
def test_a_bar_ends_at_100_percent(done):
    out = console(terminal=True)
    with Progress("ppo", 100, keep=True, console=out) as shown:
        shown.reach(done)
    assert "100%" in out.file.getvalue()
    assert "100/100" in out.file.getvalue()


def test_an_error_leaves_the_bar_where_it_was_and_ends_it():
    out = console(terminal=True)
    shown = Progress("ppo", 100, keep=True, console=out)
    with contextlib.suppress(RuntimeError), shown:
        shown.reach(50)
        raise RuntimeError
    assert "50%" in out.file.getvalue()
    assert "100%" not in out.file.getvalue()
    assert not shown._bar.live.is_started


def test_markup_in_a_name_stays_text():
    out = console(terminal=True)
    with Progress("[red]x[/]", 1, keep=True, console=out):
        pass
    assert "[red]x[/]" in out.file.getvalue()


def test_a_name_between_colons_is_no_picture(clock):
    out = console()
    with Progress("openai:llama", 2, console=out) as shown:
        clock.now += 60
        shown.reach(1)
    assert out.file.getvalue().startswith("openai:llama: 1 of 2")


def test_seconds_are_spelled_as_people_read_them():
    assert [spell_seconds(s) for s in (8.31, 42.2, 252, 7500)] == [
        "8.3 s",
        "42 s",
        "4 min 12 s",
        "2 h 5 min",
    ]
