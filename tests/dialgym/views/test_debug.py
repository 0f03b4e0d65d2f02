"""Declared bounds of rewards are enforced by the checks, and everywhere with DIALGYM_DEBUG=1."""

import numpy as np
import pytest
from typer.testing import CliRunner

from dialgym.cli.app import app
from dialgym.debug import DEBUG, BrokenPromise, enforced, enforcing
from dialgym.registry import entry_of, make_task
from dialgym.rewards import Reward
from dialgym.tasks import Outcome
from dialgym.tasks.comments import Comments
from dialgym.tasks.wordle import Wordle
from dialgym.testing import check_returns, check_task
from dialgym.views.two_party import UtteranceTwoPartyEnv
from dialgym.views.utterance_env import UtteranceEnv
from dialgym.views.utterance_vector_env import UtteranceVectorEnv
from tests.support.signals import Signals


class Generous(Wordle):
    """Gives what it does not declare to whoever finds the word, which random play never does."""

    def speak(self, state, text, rng):
        outcome = super().speak(state, text, rng)
        if not outcome.success:
            return outcome
        return Outcome.of({p: {self.cost.name: 100.0} for p in self.parties}, True, success=True)


class Uneven(Signals):
    """Its components do not add up."""

    def speak(self, state, text, rng):
        outcome = super().speak(state, text, rng)
        return outcome._replace(rewards=dict.fromkeys(self.parties, 0.25))


class Loud(Reward):
    name = "loud"
    bounds = (0.0, 1.0)

    def score(self, replies):
        return np.array([1.0 + reply.text.count("!") for reply in replies])


@pytest.fixture
def debugging(monkeypatch):
    monkeypatch.setenv(DEBUG, "1")


def play(env, text, turns=10):
    env.reset(seed=0)
    for _ in range(turns):
        *_, terminated, truncated, _ = env.step(text)
        if terminated or truncated:
            return


def test_the_switch(monkeypatch):
    monkeypatch.delenv(DEBUG, raising=False)
    assert not enforcing()
    with enforced():
        assert enforcing()
    for value, on in (("1", True), ("0", False), ("", False)):
        monkeypatch.setenv(DEBUG, value)
        assert enforcing() is on


def find(task):
    """The secret of seed 0."""
    env = UtteranceEnv(task)
    env.reset(seed=0)
    return task.answers[env.dialogue.state.secret]


def test_without_the_switch_nothing_is_enforced():
    task = Generous()
    play(UtteranceEnv(task), find(task))


def test_a_single_view_enforces_returns(debugging):
    task = Generous()
    with pytest.raises(BrokenPromise, match=r"Wordle: the system was given a return of 100; "
                       r"facts.returns allows -6 to 0"):  # fmt: skip
        play(UtteranceEnv(task), find(task))


@pytest.mark.parametrize(
    "kind", [Generous, type("Looped", (Generous,), {"batch": lambda *a: None})]
)
def test_a_batch_enforces_returns(debugging, kind):
    task = kind()
    word = find(task)
    env = UtteranceVectorEnv(task, 3)
    env.reset(seed=[0, 0, 0])
    if kind is Generous:  # its vectorised form has rules of its own, which keep to the bounds
        env.step(np.array([word] * 3))
        return
    with pytest.raises(BrokenPromise, match="a return of 100"):
        env.step(np.array([word] * 3))


def test_the_two_party_view_enforces_components(debugging):
    env = UtteranceTwoPartyEnv(Uneven())
    env.reset(seed=0)
    with pytest.raises(BrokenPromise, match=r"Signals: the user was given the rewards \[0.25\]"):
        env.step("a")


def test_rewards_of_language_keep_to_their_bounds(debugging):
    task = Comments(model=Loud())
    state = task.initial(np.random.default_rng(0))
    with pytest.raises(BrokenPromise, match=r"reward 'toxicity' gave 3 .*its bounds are 0 to 1"):
        task.speak(state, "Well!!", np.random.default_rng(0))


def test_the_check_plays_by_who_plays_well(monkeypatch):
    monkeypatch.delenv(DEBUG, raising=False)
    task = Generous(words=20)
    check_task(task, 2)  # random play does not show it
    with pytest.raises(AssertionError, match=r"with the policy 'optimal': .*a return of 9"):
        check_returns(task, ["optimal"], 2)
    with pytest.raises(AssertionError, match="its bounds are 0 to 1"):
        check_task(Comments(model=Loud()), 20)


def test_the_command_line_checks_returns():
    done = CliRunner().invoke(app, ["check", f"{__name__}:Generous", "-n", "2"])
    assert done.exit_code == 1
    assert "returns are within bounds" in done.output


@pytest.mark.parametrize("env", ["SlotFilling-v0", "MultiWOZ-v0", "Comments-v0", "Wordle-20-v0"])
def test_our_own_tasks_keep_to_their_bounds(debugging, env):
    entry = entry_of(env)
    expert = entry.row.references(entry.stand_in)["expert_policy"]
    check_returns(make_task(entry, {}), [expert, "random"], 5)
