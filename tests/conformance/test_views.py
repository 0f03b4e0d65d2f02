"""The rules agree with their facts and all views agree, for every task registered and beyond."""

from itertools import product

import numpy as np
import pytest

from dialgym.language import WordTokenizer
from dialgym.registry import entry_of, make_task
from dialgym.tasks.wordle import Wordle
from dialgym.testing import check_batch, check_task, check_views
from dialgym.views.dialogue import LoopedBatch, make_batch
from dialgym.views.token_env import TokenEnv
from dialgym.views.token_vector_env import TokenVectorEnv
from tests.conformance.ids import in_full
from tests.support.by_day import at_night, by_day

VARIANTS = [
    {},
    {"invalid": "reject"},
    {"invalid": "reject", "guesses": "any", "turns": 2},
    {"hard_mode": True, "constraint": "words"},
    {"host": "adversarial"},
    {"secret": "resample", "feedback": "ilql"},
    {"constraint": None},
]


IN_THEIR_ROOMS = ("dialgym/Bargain-v0", "dialgym/CarDealer-v0")
"""Tried in the same way, in shorter games, by `tests/dialgym/tasks/bargain`."""


@pytest.mark.parametrize(
    "env_id",
    [at_night(p.values[0]) if p.values[0] in IN_THEIR_ROOMS else p for p in in_full("token")],
)
@pytest.mark.parametrize("turns", [20, at_night(300)])
def test_registered_tasks(env_id, turns):
    task = make_task(entry_of(env_id), {})
    episodes = max(2, turns // task.facts.turn_limit)
    check_task(task, episodes=episodes)
    check_views(task, episodes=episodes)
    check_batch(task, num_envs=4, steps=max(turns // 2, 45))


@pytest.mark.parametrize("kwargs", VARIANTS, ids=str)
@pytest.mark.parametrize("episodes", [2, pytest.param(25, marks=pytest.mark.slow)])
def test_variants(kwargs, episodes):
    task = Wordle(words=40, **kwargs)
    check_task(task, episodes=episodes)
    check_views(task, episodes=episodes)
    check_batch(task, num_envs=4, steps=max(8 * episodes, 60), seed=7)


@pytest.mark.parametrize(
    ("kwargs", "overflow"),
    by_day(
        product(VARIANTS[:3], ("truncate", "slide")),
        (VARIANTS[0], "truncate"),
        (VARIANTS[2], "slide"),
    ),
    ids=str,
)
def test_short_windows(kwargs, overflow):
    check_batch(Wordle(words=40, **kwargs), steps=120, window=40, overflow=overflow)


@pytest.mark.slow
def test_a_thousand_random_episodes_batched_and_single():
    """40 rows x 480 steps in two modes; a game takes 36 tokens at most, so 1,060 games or more."""
    check_batch(Wordle(words=20, constraint="words", guesses="answers"), 40, 480, seed=3)


def test_word_tokens():
    task = Wordle(words=20, guesses="answers", constraint="words")
    tokenizer = WordTokenizer([*task.answers, "b", "y", "g", "invalid"])
    check_batch(task, 3, 90, tokenizer=tokenizer)
    env = TokenEnv(task, tokenizer)
    env.reset(seed=0)
    assert np.flatnonzero(env.action_masks()).tolist() == tokenizer.encode(" ".join(task.answers))


@pytest.mark.parametrize("kwargs", VARIANTS, ids=str)
@pytest.mark.parametrize("steps", [50, pytest.param(300, marks=pytest.mark.slow)])
def test_the_vectorised_form_equals_the_loop(kwargs, steps):
    """Wordle's table look-ups against its scalar rules, batch against batch."""
    task = Wordle(words=40, **kwargs)
    fast, slow = TokenVectorEnv(task, 16), TokenVectorEnv(task, 16)
    slow.dialogues = LoopedBatch(task, 16, "system", task.speaker_named("user", "host"))
    if not kwargs:
        assert not isinstance(fast.dialogues, LoopedBatch)
    fast.reset(seed=0)
    slow.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        mask = fast.action_masks()
        assert (mask == slow.action_masks()).all()
        actions = np.array([rng.choice(np.flatnonzero(row)) for row in mask])
        for a, b in zip(fast.step(actions)[:4], slow.step(actions)[:4]):
            assert np.array_equal(a, b)


def test_another_simulator_is_played_by_the_loop():
    class Always:
        def reply(self, task, state, rng):
            return "heard"

    batch = make_batch(Wordle(), 2, "system", Always())
    assert isinstance(batch, LoopedBatch)
    env = TokenEnv(Wordle(), simulator=Always())
    env.reset(seed=0)
    assert env.task.answers[env.dialogue.state.secret] == "heard"


def test_the_host_can_be_the_learner():
    env = TokenEnv(Wordle(words=40), learner="user", simulator="random")
    observation, _ = env.reset(seed=0)
    assert observation[0] == 4
    for token in [*env.tokenizer.encode("heard"), 1]:
        observation, reward, terminated, _, info = env.step(token)
    assert terminated
    assert reward >= 0
    assert info["transcript"].startswith("user: heard\nsystem: ")
