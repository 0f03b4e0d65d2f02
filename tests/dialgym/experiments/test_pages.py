"""The report as one HTML file: complete, harmless, and the same figures as the results."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from dialgym.experiments import benchmark
from dialgym.experiments.curves import Curve
from dialgym.experiments.pages import write_report
from dialgym.experiments.svg import draw_curves, draw_interval, ticks
from tests.support.commands import fail, succeed
from tests.support.players import SMALL

HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">'


class Shouts:
    """Says what would be markup."""

    def reply(self, task, state, rng):
        return HOSTILE


class Tags(HTMLParser):
    """The elements and attributes of a page; each that is opened is closed."""

    EMPTY = ("meta", "line", "circle", "polyline", "th", "td", "tr")

    def __init__(self, text):
        super().__init__()
        self.names, self.attributes, self.open = set(), set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    policies = {"random": "random", HOSTILE: Shouts(), "optimal": "optimal"}
    found = benchmark(policies, [SMALL], 4, (0,), games=2)
    write_report(path, found, run={"id": HOSTILE + "\udcff"}, hyperparameters={"gamma": "0.9"})
    return path.read_text("utf-8"), found


def test_a_report_has_all_parts_and_no_external_ones(page):
    text, found = page
    tags = Tags(text)
    assert tags.open == []
    assert not tags.names & {"script", "img", "link", "iframe", "object", "embed", "base", "form"}
    assert not {name for name in tags.attributes if name.startswith("on")} | (
        tags.attributes & {"src", "href", "action", "srcdoc"}
    )
    assert "url(" not in text
    assert "http://" not in text
    assert "https://" not in text
    assert "default-src 'none'" in text
    for name in ("run", "scores", "dialogues", "origin"):
        assert f'<section id="{name}">' in text
    for result in found.results:
        assert f"{result.mean_return:.2f}" in text
    assert "seed 0, episode 1" in text
    assert text.count("<article>") == 6
    assert re.search(r"numpy \d", text)
    assert "gamma" in text


def test_hostile_text_stays_text(page):
    text, _ = page
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert text.count("<img") == 0


def test_wordle_has_tiles_and_each_speaker_its_colour(page):
    text, _ = page
    assert '<p class="own system"><small>system' in text
    assert '<p class="other user"><small>user' in text
    assert '<span class="tile hit">g</span>' in text


def test_curves_are_drawn_within_the_picture():
    steps = np.arange(1.0, 2000.0)
    text = draw_curves([Curve("a<b", steps, np.sin(steps), {"random": -3.0, "optimal": 2.0})])
    assert "a&lt;b" in text
    points = re.findall(r"(-?[\d.]+),(-?[\d.]+)", re.search(r'points="([^"]+)"', text)[1])
    assert len(points) <= 400
    assert all(52 <= float(x) <= 624 and 12 <= float(y) <= 266 for x, y in points)
    single = draw_curves([Curve("one", np.array([5.0]), np.array([1.0]), {})])
    assert "<circle" in single


def test_an_interval_without_width_is_a_dot():
    assert 'cx="4.0"' in draw_interval(1.0, 1.0, 1.0, (1.0, 1.0))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(-5.3, -0.8, [-5, -4, -3, -2, -1]), (0, 9216, [0, 2000, 4000, 6000, 8000])],
)
def test_ticks_are_round(low, high, expected):
    assert ticks(low, high) == expected


def test_the_commands_write_reports(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = succeed(
        "benchmark", "--policies", "random", "--ids", SMALL, "-n", "2", "--html", "r.html"
    )
    assert "open r.html" in text
    assert "<title>random in Wordle-20-v0 - dialgym</title>" in (tmp_path / "r.html").read_text()
    assert "there is no run in runs/ here" in fail("report")


def test_a_report_of_a_run(tmp_path, monkeypatch):
    pytest.importorskip("stable_baselines3")
    monkeypatch.chdir(tmp_path)
    small = ("--timesteps", "288", "--n-envs", "8", "-p", "n_steps=36", "-p", "batch_size=288",
             "-p", "policy_kwargs={n_layer: 1, n_embd: 16}", "--device", "cpu")  # fmt: skip
    succeed("train", "ppo", SMALL, *small, "--out", "one", "-s", "words=7")
    assert succeed("report", "one", "-n", "5") == "open one/report.html\n"
    text = (tmp_path / "one" / "report.html").read_text()
    for part in ("<title>one in Wordle-20-v0", "words=7", 'id="curve"', "n_steps"):
        assert part in text
    assert all(f"<strong>one ({way})</strong>" in text for way in ("drawn", "greedy"))
    succeed("train", "ppo", SMALL, *small, "--out", "two")
    assert "expected runs in one environment" in fail("report", "one", "two")
