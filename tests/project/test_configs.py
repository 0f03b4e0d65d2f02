"""Comments of the files of hyperparameters: the seeds that their settings were chosen on.

A line `# chosen on: ...` says so for the file, or for rows that it names; panels with settings of
their own have such a line, too. It is of one of the forms of `FORMS`; seeds of reported rows, 0 to
99, may stand in comments only where the file says that its settings are to be chosen again, and
`docs/training.md` lists these files.
"""

import re

import pytest
import yaml

from agents.experiments.pydial_panel import tasks_of
from dialgym.experiments.panel import panels
from tests.support.sources import ROOT

CONFIGS = sorted((ROOT / "agents" / "configs").glob("*.yml"))
PANEL = re.compile(r"^  ([\w-]+):", re.MULTILINE)
CHOSEN = re.compile(r"^\s*# chosen on: (.*)$", re.MULTILINE)
MENTIONED = re.compile(r"\bseeds? (?:from )?(\d+)")
REPORTED = range(100)
AGAIN = "to be chosen again"
FORMS = (
    re.compile(r"seeds? (from )?[1-9]\d\d(-[1-9]\d\d)?; \S.*"),
    re.compile(r"seeds? \d\d?(-\d\d?)?, reported ones: to be chosen again( \(.+\))?"),
    re.compile(r"seeds not recorded: to be chosen again( \(.+\))?"),
    re.compile(r"no seeds; \S.*"),
)
LISTED = re.compile(r"To be chosen again, on seeds from 100: ([^.]*)\.")
ONE_SETTING = ("acer", "maskable-ppo", "dqn", "enac", "a2c", "gp-sarsa", "feudal-dqn",
               "feudal-acer", "tracer", "bbqn", "feudal-gain")  # fmt: skip


def problems(text):
    """Yield what is wrong with the comments of a file."""
    statements = CHOSEN.findall(text)
    if not statements:
        yield "no line '# chosen on: ...'"
    for statement in statements:
        if not any(form.fullmatch(statement) for form in FORMS):
            yield f"of no known form: {statement}"
    comments = re.findall(r"#.*", text)
    seeds = {int(seed) for comment in comments for seed in MENTIONED.findall(comment)}
    if seeds & {*REPORTED} and AGAIN not in text:
        yield f"seeds of reported rows: {sorted(seeds & {*REPORTED})}"


def panels_with_settings():
    """The text of each panel of the registry that has hyperparameters of its own, by name."""
    text = (ROOT / "envs_registry.yaml").read_text("utf-8").partition("\npanels:\n")[2]
    _, *parts = PANEL.split(text)
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    return {name: text for name, text in texts.items() if "hyperparameters:" in text}


@pytest.mark.parametrize("name", panels_with_settings())
def test_settings_of_panels_say_what_they_were_chosen_on(name):
    assert [*problems(panels_with_settings()[name])] == []


def test_no_panel_with_settings_is_passed_over():
    found = {
        p.name for p in panels().values() if any(a.hyperparameters for a in p.algorithms.values())
    }
    assert {*panels_with_settings()} == found


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_settings_were_chosen_on_seeds_that_are_not_reported(file):
    assert [*problems(file.read_text("utf-8"))] == []


def test_settings_chosen_on_reported_seeds_are_listed():
    text = " ".join((ROOT / "docs" / "training.md").read_text("utf-8").split())
    listed = re.findall(r"`([\w-]+)`", LISTED.search(text)[1])
    again = [file.stem for file in CONFIGS if AGAIN in file.read_text("utf-8")]
    assert sorted(listed) == again


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# Chosen on seeds 100 and above.", "no line '# chosen on: ...'"),
        ("# chosen on: seed 0; CR-Env1", "of no known form: seed 0; CR-Env1"),
        ("# chosen on: seeds 100-101", "of no known form: seeds 100-101"),
        ("# chosen on: seeds 100-101; X\n# With seed 0 it failed.", "seeds of reported rows: [0]"),
    ],
)
def test_other_comments_are_found(text, problem):
    assert problem in [*problems(text)]


@pytest.mark.parametrize("name", ONE_SETTING)
def test_a_learner_has_one_setting_over_all_tasks_of_the_benchmark(name):
    rows = yaml.safe_load((ROOT / "agents" / "configs" / f"{name}.yml").read_text("utf-8"))
    ids = {task.environment.id for task in tasks_of(["CR", "SFR", "LAP"], range(1, 7))}
    assert len(ids) == 18
    assert not ids & rows.keys()
