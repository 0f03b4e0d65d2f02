"""Every registered id against the checkers of the libraries that will use it."""

import copy
import json
import pickle
import warnings
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from pettingzoo.test import api_test, parallel_api_test, seed_test

import dialgym
from dialgym.registry import entries, entry_of
from tests.conformance.ids import in_full, variants
from tests.support.by_day import by_day

IDS = in_full()
TOKEN_IDS = in_full("token")
ACT_IDS = in_full("act")
TEXT_IDS = in_full("token", "utterance")


@pytest.mark.parametrize("env_id", IDS)
def test_gymnasium_checker_has_nothing_to_say(env_id):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(env_id).unwrapped, skip_render_check=False)


@pytest.mark.parametrize("env_id", ACT_IDS)
def test_the_checkers_have_nothing_to_say_of_the_other_partys_acts(env_id):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    env = gym.make(env_id, learner="user").unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env, skip_render_check=False)
        checker.check_env(env)


@pytest.mark.parametrize("env_id", [*TOKEN_IDS, *ACT_IDS])
def test_stable_baselines3_checker_has_nothing_to_say(env_id):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker.check_env(gym.make(env_id).unwrapped)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("env_id", [*TOKEN_IDS, *ACT_IDS])
def test_pettingzoo_api(env_id):
    """Not of texts: `api_test` asks observations for a dtype, which strings do not have."""
    api_test(dialgym.aec_env(env_id), num_cycles=100)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("env_id", [*TEXT_IDS, *ACT_IDS])
def test_pettingzoo_parallel_api_and_seeds(env_id):
    parallel_api_test(dialgym.parallel_env(env_id), num_cycles=100)
    seed_test(lambda: dialgym.aec_env(env_id), num_cycles=60)


def play(env, steps=40, seed=0):
    """A stream of what a random player sees."""
    env.action_space.seed(seed)
    yield env.reset(seed=seed)
    for _ in range(steps):
        result = env.step(env.action_space.sample())
        yield result
        if result[2] or result[3]:
            yield env.reset()


def same(first, second):
    return data_equivalence(first, second, exact=True)


@pytest.mark.parametrize("env_id", IDS)
def test_two_copies_with_one_seed_do_the_same(env_id):
    assert all(map(same, play(gym.make(env_id)), play(gym.make(env_id))))


@pytest.mark.parametrize("env_id", IDS)
def test_a_pickled_or_copied_env_goes_on_as_the_original(env_id):
    env = gym.make(env_id)
    for _ in play(env, steps=25):
        pass
    env.reset()
    for other in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        ahead = copy.deepcopy(env)
        actions = [ahead.action_space.sample() for _ in range(4)]
        assert same(until_over(ahead, actions), until_over(other, actions))


def until_over(env, actions):
    """Results of the actions, up to the end of the dialogue."""
    seen = []
    for action in actions:
        seen.append(env.step(action))
        if seen[-1][2] or seen[-1][3]:
            break
    return seen


@pytest.mark.parametrize("env_id", TOKEN_IDS)
def test_observations_share_no_memory(env_id):
    seen = [result[0] for result in play(gym.make(env_id), steps=20)]
    before = [observation.copy() for observation in seen[:-1]]
    seen[-1][:] = -1
    assert all(np.array_equal(a, b) for a, b in zip(before, seen))
    assert not any(np.shares_memory(a, b) for a, b in pairwise(seen))


@pytest.mark.parametrize("env_id", TOKEN_IDS)
def test_observations_are_append_only(env_id):
    env = gym.make(env_id)
    previous, _ = env.reset(seed=0)
    for result in play(env, steps=100):
        observation = result[0]
        length = int((observation != 0).sum())
        assert (observation[:length] != 0).all()
        assert (observation[length:] == 0).all()
        if len(result) == 5:
            known = int((previous != 0).sum())
            assert (observation[:known] == previous[:known]).all()
        previous = observation


@pytest.mark.parametrize("env_id", by_day(variants(), *variants()[::3]))
def test_variants_play_to_the_end_and_repeat_themselves(env_id):
    """In brief what the other tests try in full on the first id of each kind.

    By day a third of them; `tests/golden` plays the others too.
    """
    env, other = gym.make(env_id), gym.make(env_id)
    assert env.spec.id == env_id
    assert all(map(same, play(env, steps=10), play(other, steps=10)))
    observation, _ = env.reset(seed=1)
    rng, over = np.random.default_rng(1), False
    while not over:
        assert observation in env.observation_space
        observation, reward, terminated, truncated, info = env.step(legal_action(env, rng))
        over = terminated or truncated
    assert np.isfinite(reward)
    assert info["transcript"]
    batch = gym.make_vec(env_id, num_envs=2)
    batch.reset(seed=1)
    assert len(batch.step(batch.action_space.sample())[0]) == 2


def legal_action(env, rng):
    """An action that the masks allow, where there are any."""
    if not hasattr(env.unwrapped, "action_masks"):
        return env.action_space.sample()
    mask = env.unwrapped.action_masks()
    if isinstance(env.action_space, gym.spaces.MultiBinary):
        return (mask & (rng.random(len(mask)) < 0.02)).astype(np.int8)
    return rng.choice(np.flatnonzero(mask))


HIDDEN = {
    "Wordle": lambda state: state.secret,
    "SlotFilling": lambda state: (*sorted(state.goal.constraints.items()), *state.goal.requests),
    "DailyDialog": lambda state: (state.dialogue, state.turn),
    "Comments": lambda state: state.index,
    "VisualDialogue": lambda state: state.image,
}
"""The part that is drawn at reset, by task; of another task, all of its state."""
OPTIONS = {
    "Wordle": lambda task: {"word": task.answers[3]},
    "SlotFilling": lambda task: {"constraints": {}, "requests": ()},
    "DailyDialog": lambda task: {"index": 7},
    "Comments": lambda task: {"index": 7},
    "VisualDialogue": lambda task: {"image": 7},
}
"""Options that fix it; of another task they are not tried."""


@pytest.mark.parametrize("env_id", TOKEN_IDS)
def test_resets_differ_and_options_fix_them(env_id):
    env = dialgym.aec_env(env_id)
    hidden = HIDDEN.get(env.task.name, pickle.dumps)
    assert len({hidden(env.dialogue_state) for _ in range(20) if not env.reset()}) > 1
    if env.task.name not in OPTIONS:
        return
    options = OPTIONS[env.task.name](env.task)
    fixed = {hidden(env.dialogue_state) for _ in range(5) if not env.reset(options=options)}
    assert len(fixed) == 1


def test_made_by_module_prefix():
    assert gym.make("dialgym:dialgym/Wordle-v0").spec.id == "dialgym/Wordle-v0"


@pytest.mark.parametrize("env_id", IDS)
def test_the_dialogues_of_a_batch_go_on_from_a_file(env_id):
    """As those of a run that is resumed do, over ends of dialogues too."""
    first, second = (gym.make_vec(env_id, num_envs=3).unwrapped for _ in range(2))
    first.action_space.seed(0)
    first.reset(seed=0)
    for _ in range(7):
        first.step(first.action_space.sample())
    second.set_state(json.loads(json.dumps(first.get_state(), allow_nan=False)))
    actions = [first.action_space.sample() for _ in range(20)]
    assert all(same(first.step(action), second.step(action)) for action in actions)


@pytest.mark.parametrize("env_id", IDS)
def test_every_render_mode(env_id, capsys):
    for mode in gym.make(env_id).metadata["render_modes"]:
        env = gym.make(env_id, render_mode=mode)
        env.reset(seed=0)
        env.step(env.action_space.sample())
        drawn = env.render()
        if mode == "ansi":
            assert isinstance(drawn, str)
        elif mode == "human":
            assert env.unwrapped.task.name in capsys.readouterr().out
        else:
            assert drawn.dtype == np.uint8
            assert drawn.shape[2] == 3


@pytest.mark.parametrize("env_id", TOKEN_IDS)
def test_a_random_legal_player_says_only_words_where_words_are_asked(env_id):
    if entry_of(env_id).row.settings.get("constraint") != "words":
        pytest.skip("this id masks letters only")
    env, rng = gym.make(env_id), np.random.default_rng(0)
    env.reset(seed=0)
    for _ in range(150):
        mask = env.unwrapped.action_masks()
        *_, terminated, truncated, info = env.step(rng.choice(np.flatnonzero(mask)))
        assert info.get("reply") != "invalid"
        if terminated or truncated:
            env.reset()


def test_the_registry_is_in_order():
    ids = dialgym.list_ids()
    assert len(ids) == len(set(ids))
    for entry in entries().values():
        assert entry.row.description.endswith("."), entry.id
        assert entry.row.tags, entry.id
        scores = entry.row.scores or entry.row.builtin_scores
        assert scores["random"] < scores["expert"], entry.id
