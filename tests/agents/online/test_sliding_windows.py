"""Dialogues that a sliding window divides into several sequences: turns, weights, memory."""

import numpy as np
import pytest

import dialgym
from agents import GRPO, ArCHer
from agents.online.surrogates import LOSS_TYPES

SMALL = {"n_layer": 1, "n_head": 2, "n_embd": 16}
ROOMS = {"tokenizer": "word", "window": 120, "overflow": "slide"}
SLOTS = {"window": 60, "overflow": "slide"}


class Told(GRPO):
    """Keeps the turns that infos tell of."""

    def _step_extras(self, infos):
        told = [bool(info.get("turn")) for info in infos]
        return {**super()._step_extras(infos), "told": np.array(told)}


def played(env_id, settings, cls=Told, **given):
    env = dialgym.sb3_vec_env(env_id, 16, seed=0, **settings)
    more = {"n_steps": 150, "group_size": 8, "batch_size": 300, "policy_kwargs": SMALL, "seed": 0}
    model = cls("GPTPolicy", env, **{**more, **given})
    _, callback = model._setup_learn(100_000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)
    return model


@pytest.fixture(scope="module")
def rooms():
    return played("TextNav-v0", ROOMS)


@pytest.mark.parametrize("task", ["rooms", "slots"])
def test_turns_end_where_infos_say_so(task, rooms):
    model = rooms if task == "rooms" else played("SlotFilling-v0", SLOTS)
    told = model.rollout_buffer.steps("told")
    said = np.zeros(told.shape, bool)
    said.reshape(-1)[model.rollout.sequences.steps] = True
    told &= said
    lengths = model.rollout_buffer.steps("lengths")
    by_length_alone = np.diff(lengths, axis=0) != 1
    assert (told[:-1] & ~by_length_alone & said[1:]).any()  # as many tokens left as came
    np.testing.assert_array_equal(model._ends(said), told)


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_dialogues_weigh_what_they_weigh_undivided(loss_type, rooms, monkeypatch):
    monkeypatch.setattr(rooms, "loss_type", loss_type)
    sequences = rooms.rollout.sequences
    every = np.arange(len(sequences.sizes))
    assert len(every) > 3 * rooms.n_envs
    owner = sequences.steps % rooms.n_envs
    sizes = np.bincount(owner)
    assert np.ptp(sizes) > 0
    weights = rooms._token_weights(every)
    shares = np.ones(len(owner)) if weights is None else weights.numpy()
    found = np.bincount(owner, shares) / len(owner)
    wanted = {
        "grpo": np.full(rooms.n_envs, 1 / rooms.n_envs),
        "dr_grpo": sizes / (rooms.n_envs * rooms.n_steps),
    }.get(loss_type, sizes / sizes.sum())
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    if loss_type == "grpo":  # a half of the decisions of each dialogue counts as half of it
        some = every[::2]
        rows = sequences.decisions(some).numpy()
        halves = rooms._token_weights(some).numpy()[rows] * (1 / len(rows))
        assert halves.sum() == pytest.approx(1)
        assert np.ptp(halves * sizes[owner[rows]]) == pytest.approx(0, abs=1e-6)


def test_archer_remembers_no_pieces_of_dialogues():
    given = {"env_masks": False, "critic_steps": 1, "replay_batch": 2, "n_steps": 400}
    with pytest.raises(ValueError, match=r"lie within one window .*, got none; give a larger"):
        played("TextNav-v0", ROOMS, Memory, **given)


class Memory(ArCHer):
    """ArCHer without groups, whose arguments are others."""

    def __init__(self, policy, env, group_size, **given):
        super().__init__(policy, env, **given)
