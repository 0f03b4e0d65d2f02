"""Both parties of a dialogue as agents that choose acts."""

import numpy as np
import pytest

import dialgym

testing = pytest.importorskip("pettingzoo.test")

IDS = ["tests.support.toy_acts:Wishes-act", "CamRestaurants-Env3-act-v0"]
MASKS = [{"action_masks": True}, {"masked_observations": True}]


@pytest.mark.parametrize("kwargs", MASKS, ids=str)
@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_pettingzoos_own_tests_pass(env_id, kwargs):
    testing.api_test(dialgym.aec_env(env_id, **kwargs), num_cycles=60, verbose_progress=False)
    testing.seed_test(lambda: dialgym.aec_env(env_id, **kwargs), num_cycles=30)
    testing.parallel_api_test(dialgym.parallel_env(env_id, **kwargs), 60)
    testing.parallel_seed_test(lambda: dialgym.parallel_env(env_id, **kwargs), 30)


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
        if any((*env.terminations.values(), *env.truncations.values())):
            return


def test_the_token_level_has_masked_observations_too():
    env = dialgym.aec_env("Wordle-20-v0", masked_observations=True)
    env.reset(seed=0)
    seen = env.observe(env.agent_selection)
    assert env.observation_space(env.agent_selection).contains(seen)
    assert np.array_equal(seen["action_mask"], env.action_masks())
    assert not seen["action_mask"].all()
