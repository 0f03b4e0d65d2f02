"""Saved dialogues: gone on from in single views and in rows of a batch, they come out the same."""

import json
import pickle
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import data_equivalence

from dialgym.tasks.daily_dialog import DailyDialog
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.wordle import Wordle
from dialgym.views.act_env import ActEnv
from dialgym.views.act_vector_env import ActVectorEnv
from dialgym.views.token_env import TokenEnv
from dialgym.views.token_vector_env import TokenVectorEnv
from dialgym.views.utterance_env import UtteranceEnv
from dialgym.views.utterance_vector_env import UtteranceVectorEnv

TALK = {"turns": 3, "rewards": {"length": 1.0}}
TASKS = {
    "table": lambda: Wordle(words=40),
    "hard": lambda: Wordle(words=40, hard_mode=True, constraint="words"),
    "resample": lambda: Wordle(words=40, secret="resample"),
    "slots": lambda: SlotFilling(env=6, turns=6),
    "words": lambda: SlotFilling(env=4, language="words", turns=6),
    "talk": lambda: DailyDialog(**TALK),
}
PAIRS = [
    (TokenEnv, TokenVectorEnv, name) for name in ("table", "hard", "resample", "words", "talk")
] + [
    (UtteranceEnv, UtteranceVectorEnv, "talk"),
    (UtteranceEnv, UtteranceVectorEnv, "slots"),
    (ActEnv, ActVectorEnv, "slots"),
]
ROWS = 3


def chosen(env, rng):
    """An action, mostly an allowed one."""
    if isinstance(env, UtteranceEnv):
        return str(rng.choice(["hello()", "request(area)", "yes please", "bye()"]))
    mask = env.action_masks()
    return int(rng.choice(np.flatnonzero(mask) if rng.random() < 0.9 else np.arange(len(mask))))


def go_on(env, steps, seed):
    """What an env shows of random actions, to the end of the dialogue; and the actions."""
    rng, seen, actions = np.random.default_rng(seed), [], []
    for _ in range(steps):
        actions.append(chosen(env, rng))
        *result, info = env.step(actions[-1])
        info.pop("action_mask", None)
        seen.append((*result, info))
        if result[2] or result[3]:
            break
    return seen, actions


def same(first, second):
    return data_equivalence(first, second, exact=True)


def begun(view, task, seed, steps, **kwargs):
    """A dialogue some steps after its beginning, and what is seen there."""
    env = view(task, **kwargs)
    while True:
        env.reset(seed=seed)
        observation, _, terminated, truncated, _ = go_on(env, steps, seed)[0][-1]
        if not (terminated or truncated):
            return env, observation
        seed += 100


@pytest.mark.parametrize("steps", [1, 9])
@pytest.mark.parametrize(("view", "batched", "name"), PAIRS)
def test_a_saved_dialogue_is_replayed(view, batched, name, steps):
    task = TASKS[name]()
    env, observed = begun(view, task, 0, steps if view is TokenEnv else 2, anchors=True)
    saved = env.clone_state()
    first, _ = go_on(env, 60, seed=5)
    for other in (env, view(task, anchors=True)):  # here, and in an env that has never begun
        assert same(other.restore_state(pickle.loads(pickle.dumps(saved))), observed)
        assert same(go_on(other, 60, seed=5)[0], first)
    assert first[-1][2] or first[-1][3]
    assert same(env.restore_state(saved), observed)  # what was saved is as it was


@pytest.mark.parametrize(("view", "batched", "name"), PAIRS)
def test_it_goes_on_in_the_rows_of_a_batch_too(view, batched, name):
    task, rng = TASKS[name](), np.random.default_rng(1)
    env, observed = begun(view, task, 3, 2)
    batch = batched(task, ROWS, autoreset_mode="NextStep")
    with pytest.raises(ResetNeeded):
        batch.clone_state()
    batch.reset(seed=9)
    if hasattr(batch, "action_masks"):
        batch.action_masks()
    saved = env.clone_state()
    restored = batch.restore_state([saved] * ROWS)
    assert all(same(np.asarray(restored[row]), np.asarray(observed)) for row in range(ROWS))
    over = False
    while not over:
        if hasattr(env, "action_masks"):
            assert (batch.action_masks() == env.action_masks()).all()
        action = chosen(env, rng)
        observation, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        actions = [action] * ROWS
        several = batch.step(actions if isinstance(action, str) else np.array(actions))
        for row in range(ROWS):
            assert same(np.asarray(several[0][row]), np.asarray(observation))
            assert several[1][row] == pytest.approx(reward)
            assert (several[2][row], several[3][row]) == (terminated, truncated)
            assert several[4]["transcript"][row] == info["transcript"]


@pytest.mark.parametrize(("view", "batched", "name"), PAIRS)
def test_some_rows_are_taken_back_while_others_go_on(view, batched, name):
    task = TASKS[name]()
    batch, single = batched(task, ROWS, autoreset_mode="NextStep"), view(task)
    batch.reset(seed=4)
    saved = batch.clone_state([1])
    rng = np.random.default_rng(2)
    if view is UtteranceEnv:
        script = [chosen(single, rng) for _ in range(3)]
    else:
        script = rng.integers(0, single.action_space.n, 3).tolist()

    def step(action):
        actions = [action] * ROWS
        return batch.step(actions if isinstance(action, str) else np.array(actions))

    before = [step(action)[1][1] for action in script]
    batch.restore_state(saved, [1])
    after = [step(action)[1][1] for action in script]
    assert after == before
    mirror = view(task)
    mirror.restore_state(saved[0])
    for action, expected in zip(script, before):
        _, reward, terminated, truncated, _ = mirror.step(action)
        assert reward == pytest.approx(expected)
        if terminated or truncated:
            break


def test_a_seed_makes_another_future():
    task = Wordle(words=400, secret="resample")
    env = UtteranceEnv(task)
    env.reset(seed=0)
    env.step("crane")
    saved, futures = env.clone_state(), set()
    for seed in (None, None, 1, 1, 2, 3):
        env.restore_state(saved, seed)
        futures.add(tuple(env.step("zebra" if i else "mount")[4]["reply"] for i in range(2)))
    assert 1 < len(futures) <= 4


def test_the_end_of_a_dialogue_is_saved_as_well():
    env = UtteranceEnv(Wordle(words=40))
    word = env.task.answers[0]
    env.reset(seed=0, options={"word": word})
    env.step(word)
    saved = env.clone_state()
    env.reset()
    env.restore_state(saved)
    with pytest.raises(ResetNeeded, match="after the end of the episode"):
        env.step(word)
    batch = UtteranceVectorEnv(env.task, 2, autoreset_mode="SameStep")
    batch.reset(seed=0)
    with pytest.raises(ValueError, match="the dialogue for row 1 is over"):
        batch.restore_state([saved], [1])


def test_ids_have_it_by_their_unwrapped_env():
    env = gym.make("dialgym/Wordle-v0")
    env.reset(seed=0)
    saved = env.unwrapped.clone_state()
    assert env.unwrapped.restore_state(saved).dtype == np.int32


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_the_state_of_a_batch_has_rows_that_are_over_cut_or_left(mode):
    """Ended by the rules, by the limit of steps, and let be: each goes on as it would have."""
    make = partial(TokenVectorEnv, Wordle(words=40, turns=1), 3, autoreset_mode=mode)
    first, second = make(max_episode_steps=6), make(max_episode_steps=6)
    second.set_state(first.get_state())  # before the first reset there is nothing to go on with
    with pytest.raises(ResetNeeded):
        second.step(np.zeros(3, int))
    first.reset(seed=0)
    rng, words = np.random.default_rng(0), np.array([[5, 6, 7, 8, 9, 1, 1], [5, 1, 5, 1, 5, 1, 5]])
    over = np.zeros(3, bool)
    for step in range(25):
        if mode == "Disabled":
            first.deactivate(over)
        second.set_state(json.loads(json.dumps(first.get_state())))
        assert np.array_equal(first.action_masks(), second.action_masks())
        actions = np.array([*words[:, step % 7], rng.integers(5, 30)])
        result = first.step(actions)
        assert same(result, second.step(actions))
        over = result[2] | result[3]


def test_what_is_no_dialogue_is_not_gone_on_from():
    env, batch = TokenEnv(Wordle(words=40)), TokenVectorEnv(Wordle(words=40), 1)
    batch.reset(seed=0)
    for restore in (lambda: env.restore_state(5), lambda: batch.restore_state([5])):
        with pytest.raises(ValueError, match=r"expected a dialogue of its token view.*; got 5\."):
            restore()


def test_a_state_that_is_refused_changes_nothing():
    env, other = (TokenVectorEnv(Wordle(words=40), 2) for _ in range(2))
    env.reset(seed=0)
    before = env.get_state()
    other.reset(seed=1)
    wrong = {
        "a list of 2 dialogues, got 1": other.get_state()[:1],
        "cannot be read: .*expected a list": {"dialogues": other.get_state()},
        r"\[1\].turn: expected int, got str": changed(other, turn="0"),
        r"\[0\].view: expected str": changed(other, 0, view=None),
        "got one of the act view": changed(other, view="act"),
        "up to 108 token ids": changed(
            other, seen=[{"dtype": "<i4", "shape": [1], "items": [99]}, 0]
        ),
        "cannot be gone on from": changed(other, turn=3),
        "no utterance begins at token 9": changed(other, seen=[other.get_state()[1]["seen"][0], 9]),
    }
    for message, state in wrong.items():
        with pytest.raises(ValueError, match=message):
            env.set_state(state)
        assert env.get_state() == before


def changed(env, row=1, **changes):
    state = env.get_state()
    return [{**saved, **(changes if i == row else {})} for i, saved in enumerate(state)]
