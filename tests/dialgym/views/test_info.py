"""The info of every view has the same keys and types at every step, from `reset` on."""

import copy
import importlib
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import dialgym
from dialgym.views.info import group_of
from tests.conformance.ids import in_full
from tests.support.infos import KEYS, form, same_infos

NUMBERS = ["Wordle-20-v0", "CamRestaurants-Env1-act-v0", "MultiWOZ-act-v0"]
IDS = [
    "Wordle-20-v0",
    "Wordle-20-utterance-v0",
    "CamRestaurants-Env1-v0",
    "CamRestaurants-Env1-act-v0",
    "DailyDialog-utterance-v0",
]


def draw(env, rng):
    """A random action, mostly an allowed one."""
    if not hasattr(env.unwrapped, "action_masks"):
        return env.action_space.sample()
    return int(rng.choice(np.flatnonzero(env.unwrapped.action_masks())))


@pytest.mark.parametrize("kwargs", [{}, {"text_info": False}], ids=str)
@pytest.mark.parametrize("env_id", IDS)
def test_a_single_view_has_one_structure(env_id, kwargs):
    env = gym.make(f"dialgym/{env_id}", **kwargs)
    rng = np.random.default_rng(0)
    env.action_space.seed(0)
    _, first = env.reset(seed=0)
    if not kwargs:
        assert list(first) == KEYS
    ends = 0
    while ends < 4:
        _, reward, terminated, truncated, info = env.step(draw(env, rng))
        assert form(info) == form(first)
        assert (info["turn"] > 0) >= (reward != 0)
        assert sum(group_of(info, "reward_components").values()) == pytest.approx(reward)
        if terminated or truncated:
            ends += 1
            assert info["turn"]
            assert kwargs or info["transcript"]
            assert form(env.reset()[1]) == form(first)


BATCHES = [
    (env_id, kwargs)
    for env_id in ("Wordle-20-v0", "Wordle-20-utterance-v0", "CamRestaurants-Env1-act-v0")
    for kwargs in ({}, {"action_masks": True}, {"text_info": False}, {"anchors": True})
    if "utterance" not in env_id or "action_masks" not in kwargs
]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("limit", [None, 7])
@pytest.mark.parametrize(("env_id", "kwargs"), BATCHES, ids=str)
@pytest.mark.parametrize("steps", [25, pytest.param(90, marks=pytest.mark.slow)])
def test_a_batch_is_gymnasiums_own(env_id, kwargs, limit, mode, steps):
    """Results and infos to the dtype, with masks, without texts, and under a step limit."""
    env_id = f"dialgym/{env_id}"
    kwargs = {"max_episode_steps": limit, **kwargs}
    ours = gym.make_vec(env_id, 3, autoreset_mode=mode, **kwargs)
    theirs = gym.make_vec(
        env_id,
        3,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode(mode)},
        **kwargs,
    )
    _, info = ours.reset(seed=5)
    same_infos(info, theirs.reset(seed=5)[1])
    first = form(info)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        if "utterance" in env_id:
            actions = ours.action_space.sample()
        else:
            masks = ours.unwrapped.action_masks()
            actions = np.array([rng.choice(np.flatnonzero(row)) for row in masks])
        *batch, info = ours.step(actions)
        *single, expected = theirs.step(actions)
        for array, other in zip(batch, single):
            assert np.array_equal(array, other)
        same_infos(info, expected)
        assert mode == "SameStep" or form(info) == first


def only_numbers(info):
    """The form of an info, all of whose values have to be arrays of numbers."""
    assert {type(value) for value in info.values()} == {np.ndarray}
    assert {value.dtype.kind for value in info.values()} <= set("biuf")
    return form(info)


@pytest.mark.parametrize("kwargs", [{}, {"action_masks": True}], ids=str)
@pytest.mark.parametrize("env_id", NUMBERS)
def test_without_texts_a_single_views_info_is_flat_numbers(env_id, kwargs):
    env = gym.make(f"dialgym/{env_id}", text_info=False, **kwargs)
    env.action_space.seed(0)
    first = only_numbers(env.reset(seed=0)[1])
    over = False
    while not over:
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert only_numbers(info) == first
        over = terminated or truncated
    components = env.unwrapped.task.facts.components["system"]
    assert set(components) <= {name.removeprefix("reward_components/") for name in info}
    assert sum(group_of(info, "reward_components").values()) == pytest.approx(reward)
    assert set(group_of(info, "metrics")) == set(env.unwrapped.task.facts.metrics)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("env_id", NUMBERS)
def test_without_texts_a_batchs_info_is_flat_numbers(env_id, mode):
    env = gym.make_vec(f"dialgym/{env_id}", 3, autoreset_mode=mode, text_info=False)
    env.action_space.seed(0)
    first = only_numbers(env.reset(seed=0)[1])
    ends = 0
    while ends < 2:
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        over = terminated | truncated
        ends += over.any()
        last = info if mode != "SameStep" else info.pop("final_info", None)
        for name in ("_final_info", "final_obs", "_final_obs"):
            info.pop(name, None)
        assert only_numbers(info) == first
        if over.any():
            assert only_numbers(last) == first
            assert (last["turn"][over] > 0).all()
            if mode == "Disabled":
                env.reset(options={"reset_mask": over})


@pytest.mark.parametrize("make", [dialgym.aec_env, dialgym.parallel_env])
@pytest.mark.parametrize("env_id", NUMBERS)
def test_without_texts_the_infos_of_both_parties_are_flat_numbers(env_id, make):
    env = make(f"dialgym/{env_id}", text_info=False)
    if make is dialgym.aec_env:
        env.reset(seed=0)
        first = {agent: only_numbers(env.infos[agent]) for agent in env.agents}
        for agent in env.agent_iter():
            _, _, terminated, truncated, info = env.last()
            assert only_numbers(info) == first[agent]
            space = env.action_space(agent)
            env.step(None if terminated or truncated else space.sample())
        return
    first = {agent: only_numbers(info) for agent, info in env.reset(seed=0)[1].items()}
    while env.agents:
        infos = env.step({agent: env.action_space(agent).sample() for agent in env.agents})[-1]
        assert {agent: only_numbers(info) for agent, info in infos.items()} == first


def test_the_parallel_view_says_by_name_who_has_the_floor():
    env = dialgym.parallel_env("dialgym/Wordle-20-utterance-v0")
    _, infos = env.reset(seed=0)
    assert {info["active_agent"] for info in infos.values()} == {"user"}
    infos = env.step({"user": "x", "system": "x"})[-1]
    assert {info["active_agent"] for info in infos.values()} == {"system"}


def torchrl_env(env_id, kind):
    libs = pytest.importorskip("torchrl.envs")
    unread = kind in ("aec", "parallel") and "MultiWOZ" in env_id  # masks of `MultiBinary` actions
    kwargs = {"text_info": False, "action_masks": not unread}
    if kind == "single":
        return libs.GymWrapper(gym.make(env_id, **kwargs)).auto_register_info_dict()
    if kind == "batch":
        return libs.GymWrapper(gym.make_vec(env_id, 3, autoreset_mode="SameStep", **kwargs))
    make = dialgym.aec_env if kind == "aec" else dialgym.parallel_env
    return libs.PettingZooWrapper(make(env_id, **kwargs), use_mask=kind == "aec")


@pytest.mark.parametrize("kind", ["single", "batch", "aec", "parallel"])
@pytest.mark.parametrize("env_id", NUMBERS)
def test_torchrl_reads_the_infos(env_id, kind):
    env = torchrl_env(f"dialgym/{env_id}", kind)
    importlib.import_module("torchrl.envs").check_env_specs(env)
    assert env.rollout(40, break_when_any_done=False)["next", "done"].any() or kind != "batch"


def test_a_step_limit_and_infos_of_shards_are_those_of_one_process():
    kwargs = {"autoreset_mode": "SameStep", "max_episode_steps": 4}
    one, two = (gym.make_vec("dialgym/Wordle-20-v0", 5, workers=n, **kwargs) for n in (0, 2))
    assert two.spec.max_episode_steps == 4
    same_infos(two.reset(seed=0)[1], one.reset(seed=0)[1])
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = rng.integers(5, 31, 5)
        *ours, infos = two.step(actions)
        *theirs, expected = one.step(actions)
        assert all(map(np.array_equal, ours, theirs))
        same_infos(infos, expected)
    two.close()


def test_infos_do_not_share_what_can_change():
    env = gym.make("dialgym/Wordle-20-v0")
    _, info = env.reset(seed=0)
    info["reward_components"]["wrong guess"] = 5.0
    info["turn"] = 9
    later = env.step(5)[-1]
    assert later["reward_components"] == {"wrong guess": 0.0}
    assert later["turn"] == 0


@pytest.mark.parametrize(
    "again", [lambda env: env, copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))]
)
def test_empty_arrays_are_shared_and_read_only(again):
    env = again(gym.make_vec("dialgym/Wordle-20-v0", 2))
    _, info = env.reset(seed=0)
    info["more"] = 1
    with pytest.raises(ValueError, match="read-only"):
        info["turn"][0] = 3
    assert "more" not in env.step(np.array([5, 6]))[-1]


def test_minari_records_infos(tmp_path, monkeypatch):
    """Its buffer holds nothing but arrays of one shape, so texts and `None` were refused."""
    minari = pytest.importorskip("minari")
    pytest.importorskip("jax")  # which Minari collects with
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = minari.DataCollector(
        gym.make("dialgym/CamRestaurants-Env1-act-v0", text_info=False), record_infos=True
    )
    for episode in range(2):
        env.reset(seed=episode)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            over = terminated or truncated
    stored = env.create_dataset("dialgym/infos-v0", algorithm_name="random")
    infos = stored[0].infos
    assert len(infos["turn"]) == len(stored[0].rewards) + 1
    parts = group_of(infos, "reward_components").values()
    assert np.allclose(sum(part[1:] for part in parts), stored[0].rewards)


@pytest.mark.parametrize("env_id", in_full("utterance"))
def test_the_names_of_components_are_those_of_the_facts(env_id):
    env = gym.make(env_id)
    names = env.unwrapped.task.facts.components["system"]
    assert names
    assert tuple(env.reset(seed=0)[1]["reward_components"]) == names
