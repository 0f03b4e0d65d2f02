"""Options and kinds of views: what a new one has to touch."""

import re
from pathlib import Path

import numpy as np
import pytest

import dialgym
from dialgym.kinds import KINDS, ViewKind
from dialgym.registry import entry_of
from dialgym.rollouts import Player
from dialgym.tasks.wordle import Wordle
from dialgym.views.token_env import TokenEnv
from dialgym.views.token_vector_env import TokenVectorEnv
from dialgym.views.two_party import TokenTwoPartyEnv

PACKAGE = Path(dialgym.__file__).parent


@pytest.mark.parametrize("option", ["truths", "belief_gain"])
def test_an_option_stands_in_two_files(option):
    """Where it is declared, and where it is done."""
    word = re.compile(rf"\b{option}\b")
    files = {p.name for p in PACKAGE.rglob("*.py") if word.search(p.read_text("utf-8"))}
    assert files == {"options.py", "extras.py"}


class LowEnv(TokenEnv):
    """A fourth kind: tokens, counted from the other end."""

    view = "low"

    def step(self, action):
        return super().step(self.action_space.n - 1 - int(action))


class LowVectorEnv(TokenVectorEnv):
    """Its batch."""

    view = "low"

    def step(self, actions):
        return super().step(self.single_action_space.n - 1 - np.asarray(actions))


class Last:
    """A policy with `predict` that takes the last action."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return np.full(len(observation), 31), state


@pytest.fixture
def low(monkeypatch):
    here, two_party = __name__, KINDS["token"].two_party
    kind = ViewKind("low", "-low", f"{here}:LowEnv", f"{here}:LowVectorEnv", two_party, "tokens")
    monkeypatch.setitem(KINDS, "low", kind)
    return "dialgym.tasks.wordle:Wordle-low"


def test_a_fourth_kind_is_a_row_and_its_classes(low):
    entry = entry_of(low)
    assert (entry.view, entry.in_view("token").id) == ("low", "dialgym.tasks.wordle:Wordle")
    env, batch = dialgym.make(low, words=20), dialgym.make_vec(low, 2, words=20, text_info=False)
    assert isinstance(env.unwrapped, LowEnv)
    twin = TokenEnv(Wordle(words=20))
    assert np.array_equal(env.reset(seed=0)[0], twin.reset(seed=0)[0])
    assert np.array_equal(env.step(3)[0], twin.step(twin.action_space.n - 4)[0])
    assert np.array_equal(batch.reset(seed=0)[0][0], twin.reset(seed=0)[0])
    other = LowVectorEnv(Wordle(words=20), 2)
    other.set_state(batch.unwrapped.get_state())
    assert other.get_state() == batch.unwrapped.get_state()
    assert dialgym.sb3_vec_env(low, 2).num_envs == 2
    assert isinstance(dialgym.aec_env(low), TokenTwoPartyEnv)
    (played,) = Player(low, Last(), num_envs=2).play([(0, 0), (0, 1)])
    assert len(played) == 2
