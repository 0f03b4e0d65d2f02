"""Infos and masks of the two-party views, for both parties at every step."""

import numpy as np
import pytest
from pettingzoo.utils.wrappers import TerminateIllegalWrapper

import dialgym
from tests.support.infos import KEYS, form


def play(env, rng, steps=300):
    """Random allowed acts; the infos of both parties after each step."""
    env.reset(seed=0)
    yield env.infos
    for _ in range(steps):
        agent = env.agent_selection
        if env.terminations[agent] or env.truncations[agent]:
            return
        env.step(int(rng.choice(np.flatnonzero(env.infos[agent]["action_mask"]))))
        yield env.infos


@pytest.mark.parametrize("env_id", ["Wordle-20-v0", "SlotFilling-act-v0"])
def test_infos_of_both_parties_have_one_structure(env_id):
    env = dialgym.aec_env(env_id, action_masks=True)
    rng, first = np.random.default_rng(0), None
    for infos in play(env, rng):
        first = first or {party: form(info) for party, info in infos.items()}
        assert {party: form(info) for party, info in infos.items()} == first
    assert set(KEYS) <= set(first["system"])
    assert set(first) == {"system", "user"}
    assert all(info["transcript"] for info in infos.values())
    assert env.infos["system"]["turn"] > 0


def test_each_party_is_told_what_it_said_and_heard():
    env = dialgym.aec_env("Wordle-20-utterance-v0")
    env.reset(seed=0)
    while env.agent_selection == "user":
        env.step("crane")
    env.step("about")
    system, user = env.infos["system"], env.infos["user"]
    assert (system["utterance"], user["utterance"]) == ("about", "")
    assert user["reply"] == "about" or user["reply"] == system["reply"]
    assert system["reward_components"] == {"wrong guess": -1.0}
    assert user["reward_components"] == {"wrong guess": 1.0}


@pytest.mark.parametrize("make", [dialgym.aec_env, dialgym.parallel_env])
def test_there_is_a_mask_for_every_agent(make):
    """The party that is silent may do anything, as nothing comes of it."""
    env = make("Wordle-20-v0", action_masks=True)
    env.reset(seed=0)
    infos = env.infos if make is dialgym.aec_env else env.reset(seed=0)[1]
    for agent in env.agents:
        mask = infos[agent]["action_mask"]
        assert mask.dtype == np.int8
        env.action_space(agent).sample(mask)  # as Gymnasium wants it
    assert sorted(infos[agent]["action_mask"].all() for agent in env.agents) == [False, True]


def test_pettingzoos_own_wrapper_ends_a_game_at_a_forbidden_act():
    env = TerminateIllegalWrapper(
        dialgym.aec_env("Wordle-20-v0", action_masks=True), illegal_reward=-9
    )
    rng = np.random.default_rng(0)
    for _ in play(env, rng, steps=5):
        pass
    agent = env.agent_selection
    env.step(int(np.flatnonzero(env.infos[agent]["action_mask"] == 0)[0]))
    assert env.terminations[agent]
    assert env.rewards[agent] == -9


def test_a_refused_action_leaves_the_reward_to_be_read():
    env = dialgym.aec_env("Wordle-20-utterance-v0")
    env.reset(seed=0)
    for text in ("about", "zzzzz"):  # the host chooses, the system guesses
        env.step(text)
    assert env.agent_selection == "system"
    before = env.last()[1], dict(env.rewards)
    with pytest.raises(ValueError, match="expected a string; got 5"):
        env.step(5)
    assert before == (-1.0, {"system": -1.0, "user": 1.0})
    assert (env.last()[1], dict(env.rewards)) == before


def test_after_the_end_a_step_of_both_is_empty():
    env = dialgym.parallel_env("Wordle-20-utterance-v0")
    assert env.agents == []
    env.reset(seed=0)
    while env.agents:
        env.step(dict.fromkeys(env.agents, "about"))
    assert env.step({}) == ({}, {}, {}, {}, {})
