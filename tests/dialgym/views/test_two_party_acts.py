"""Both parties of a dialogue as agents that choose acts."""

import numpy as np
import pytest

import dialgym
from dialgym.tasks import ActSpeaker
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.wordle import Wordle
from dialgym.views.act_env import ActEnv
from dialgym.views.two_party import ActTwoPartyEnv
from tests.support.toy_acts import Wishes

testing = pytest.importorskip("pettingzoo.test")

IDS = ["tests.support.toy_acts:Wishes-act", "SlotFilling-act-v0", "CamRestaurants-Env3-act-v0"]
MASKS = [{}, {"action_masks": True}, {"masked_observations": True}]
TASKS = [(Wishes(), "tell-all", "ask-all"), (SlotFilling(env=3), "agenda", "handcrafted")]


@pytest.mark.parametrize("kwargs", MASKS, ids=str)
@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_pettingzoos_own_tests_pass(env_id, kwargs):
    testing.api_test(dialgym.aec_env(env_id, **kwargs), num_cycles=60, verbose_progress=False)
    testing.seed_test(lambda: dialgym.aec_env(env_id, **kwargs), num_cycles=30)
    testing.parallel_api_test(dialgym.parallel_env(env_id, **kwargs), 60)
    testing.parallel_seed_test(lambda: dialgym.parallel_env(env_id, **kwargs), 30)


@pytest.mark.parametrize(("task", "user", "system"), TASKS, ids=lambda value: str(value)[:10])
@pytest.mark.parametrize("learner", ["system", "user"])
def test_the_single_view_is_this_with_one_side_played_by_a_policy(task, user, system, learner):
    """Observations, masks, rewards, ends and infos, with random acts of the learner's."""
    other, name = ("user", user) if learner == "system" else ("system", system)
    policy, both = task.acts[other].policy_named(name), ActTwoPartyEnv(task)
    single = ActEnv(task, learner=learner, simulator=ActSpeaker(policy))
    rng = np.random.default_rng(0)
    ended = set()
    for seed in range(25):
        seen, _ = single.reset(seed=seed)
        both.reset(seed=seed)
        play(both, other, policy)
        over = False
        while not over:
            assert np.array_equal(both.observe(learner), seen)
            assert np.array_equal(both.action_masks(), single.action_masks())
            action = task.acts[learner].policy_named("random").act(task, both.dialogue_state, rng)
            seen, reward, terminated, truncated, info = single.step(action)
            both.step(action)
            gained = both.rewards[learner] + play(both, other, policy, learner)
            assert gained == pytest.approx(reward)
            assert both.terminations[learner] == terminated
            assert both.truncations[learner] == truncated
            over = terminated or truncated
            ended.add((terminated, truncated))
        assert np.array_equal(both.observe(learner), seen)
        assert both.infos[learner]["is_success"] == info["is_success"]
        lines = task.transcript(both.dialogue_state, learner)
        assert info["transcript"] == "".join(f"{s}: {t}\n" for s, t, _ in lines)
    assert (True, False) in ended


def play(env, party, policy, learner=None):
    """Let a policy play its party until the other has the floor; what the learner gains by it."""
    gained = 0.0
    while not over(env) and env.agent_selection == party:
        env.step(policy.act(env.task, env.dialogue_state, env.rng))
        gained += env.rewards[learner] if learner else 0.0
    return gained


def over(env):
    return any((*env.terminations.values(), *env.truncations.values()))


@pytest.mark.parametrize("env_id", IDS)
def test_masks_are_those_of_the_party_that_acts(env_id):
    env = dialgym.aec_env(env_id, action_masks=True)
    dicts = dialgym.aec_env(env_id, masked_observations=True)
    rng = np.random.default_rng(0)
    env.reset(seed=1)
    dicts.reset(seed=1)
    for _ in range(6):
        party = env.agent_selection
        (other,) = set(env.agents) - {party}
        acts, state = env.task.acts[party], env.dialogue_state
        mask = env.infos[party]["action_mask"]
        assert mask.dtype == np.int8
        assert np.array_equal(mask, acts.mask(state))
        assert env.infos[other]["action_mask"].all()
        seen, unseen = dicts.observe(party), dicts.observe(other)
        assert np.array_equal(seen["action_mask"], mask)
        assert unseen["action_mask"].all()
        assert np.array_equal(seen["observation"], env.observe(party))
        for name in (party, other):
            assert dicts.observation_space(name).contains(dicts.observe(name))
        action = acts.policy_named("random").act(env.task, state, rng)
        env.step(action)
        dicts.step(action)
        if over(env):
            return


def test_the_token_level_has_masked_observations_too():
    env = dialgym.aec_env("Wordle-20-v0", masked_observations=True)
    env.reset(seed=0)
    seen = env.observe(env.agent_selection)
    assert env.observation_space(env.agent_selection).contains(seen)
    assert np.array_equal(seen["action_mask"], env.action_masks())
    assert not seen["action_mask"].all()


def test_a_bad_action_is_one_clear_error():
    env = dialgym.aec_env("SlotFilling-act-v0")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action of SlotFilling: expected a whole number from 0"):
        env.step(10_000)


def test_both_parties_need_acts():
    with pytest.raises(ValueError, match=r"expected a task with dialogue acts .* got Wordle"):
        ActTwoPartyEnv(Wordle())
