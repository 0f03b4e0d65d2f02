"""`dialgym new task`: what it writes works, and what it is told in error is said."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dialgym
from tests.support.commands import fail, succeed

ROOT = Path(__file__).parents[3]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "order_lunch"]:
        del sys.modules[name]


def ran(*arguments, cwd):
    """Output of a command in its own process."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=env, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("name", ["order-lunch", "OrderLunch", "order_lunch", "order lunch"])
def test_names(name, here):
    succeed("new", "task", name)
    assert (
        'dialgym.register(\n    "OrderLunch-v0"' in (here / "order_lunch/__init__.py").read_text()
    )


def test_what_is_written_is_checked_played_and_tested(here):
    printed = succeed("new", "task", "order-lunch")
    assert "dialgym train ppo order_lunch:OrderLunch-v0" in printed
    text = succeed("check", "order_lunch:OrderLunch-v0", "-n", "20")
    assert text.count("✓ OrderLunch: ") == 10  # of the rules and views, then of any text env
    assert "!" not in text  # an agent can begin at random
    found = dialgym.evaluate("bisect", "order_lunch:OrderLunch-v0", episodes=50, seeds=[0])
    assert found.success > 0.9
    tests = ran("-m", "pytest", "-q", "-p", "no:cacheprovider", "order_lunch", cwd=here)
    assert "8 passed" in tests
    loop = ran("-m", "order_lunch.two_party", cwd=here)
    assert loop.startswith("system: ")
    assert "user: " in loop
    for file in (here / "order_lunch").glob("*.py"):
        assert not re.search(r"dialgym\.(views|registry|rollouts)", file.read_text())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("9lives", "expected a name of letters, digits and hyphens"),
        ("a/b", "expected a name of letters"),
        ("json", "Python has a module 'json' already"),
        ("class", "Python has a module 'class' already"),
        ("numpy", "Python has a module 'numpy' already"),
        ("dialgym", "Python has a module 'dialgym' already"),
        ("agents", "Python has a module 'agents' already"),
        ("utterance", "its class would be called 'Utterance', which the files of a task use"),
        ("state", "would be called 'State'"),
        ("WordTrie", "would be called 'WordTrie'"),
        ("task", "would be called 'Task'"),
        ("bisect-", "expected a name of letters"),
        ("Host", "would be called 'Host'"),
        ("value-error", "would be called 'ValueError'"),
        ("none", "would be called 'None'"),
        ("wordle", "dialgym has an environment Wordle-v0 already"),
        ("twenty questions", "dialgym has an environment TwentyQuestions-v0 already"),
    ],
)
def test_names_that_cannot_be(name, message, here):
    assert message in fail("new", "task", name)


def test_nothing_is_overwritten(here):
    succeed("new", "task", "order-lunch")
    assert "'order_lunch' is there already" in fail("new", "task", "order-lunch")


@pytest.mark.slow
def test_from_nothing_to_an_agent_that_beats_chance(here):
    """The five minutes of the page: PPO, a table, and a loop of two parties."""
    command = ("-m", "dialgym")
    ran(*command, "new", "task", "order-lunch", cwd=here)
    env_id = "order_lunch:OrderLunch-v0"
    ran(*command, "train", "ppo", env_id, "--timesteps", "250000", "--out", "runs/lunch", cwd=here)
    table = ran(
        *command, "benchmark", "--ids", env_id, "--policies", "random,bisect,runs/lunch", cwd=here
    )
    assert "bisect" in table
    scores = dialgym.evaluate("runs/lunch", env_id, episodes=300, seeds=[0], trust=False)
    chance = dialgym.evaluate("random", env_id, episodes=300, seeds=[0])
    assert scores.interval[0] > chance.interval[1]


TASK = """
from tests.support.own_task import GUESS
exec(GUESS.replace("MODULE", "my_hopeless"))

class Hopeless(GuessNumber):
    name = "Hopeless"
    def initial(self, rng, options=None):
        return replace(super().initial(rng, options), secret=-1)  # which nobody can say
"""


def test_a_task_in_which_nothing_can_be_learned_at_random(here):
    Path("my_hopeless.py").write_text(TASK, encoding="utf-8")
    text = succeed("check", "my_hopeless:Hopeless", "-n", "10", "--set", "turns=4")
    sys.modules.pop("my_hopeless")
    assert "! Hopeless: there is no constraint on what the system says, and no learnable" in text
    assert "10 dialogues in which the system said anything at random all earned -4" in text
