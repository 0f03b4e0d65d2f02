"""GPT policies inside the stock algorithms: the fast ways give what the slow ways give."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from sb3_contrib import MaskablePPO
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from agents import EpisodeRolloutBuffer, GPTPolicy, MaskableEpisodeRolloutBuffer, MaskableGPTPolicy
from agents.buffers.episodes import episode_batches
from agents.models.prefixes import lengths_of
from tests.support.by_day import by_day
from tests.support.toy_policies import CLOSE, SMALL, WINDOW, plain, policy, random_rows
from tests.support.toy_tokens import Echo, V, box

# A separate value network


def test_a_value_network_of_its_own_starts_equal_and_learns_alone():
    p = policy(share_features_extractor=False, mask=False)
    torch.nn.init.normal_(p.value_head.linear.weight)
    obs = torch.tensor(random_rows(np.random.default_rng(0), 5))
    actions = torch.ones(5, dtype=torch.int64)
    hidden = plain(p.backbone, obs)
    torch.testing.assert_close(p.predict_values(obs), p.value_head(hidden), **CLOSE)
    p.evaluate_actions(obs, actions)[0].sum().backward()
    assert all(q.grad is None for q in p.backbone.parameters())
    assert any(q.grad.any() for q in p.value_backbone.parameters())
    with torch.no_grad():
        p.predict_values(obs)  # fills the cache that the update below makes invalid
        for weight in p.value_backbone.parameters():
            weight += 0.1 * torch.randn_like(weight)
        expected = p.value_head(plain(p.value_backbone, obs))
        assert not torch.allclose(expected, p.value_head(hidden))
        at = WINDOW * torch.arange(5) + lengths_of(obs) - 1
        ways = (
            p(obs)[1],
            p.predict_values(obs),
            p.evaluate_actions(obs, actions)[0],
            p.evaluate_sequences(obs, at, actions)[0][:, None],
        )
        for values in ways:
            torch.testing.assert_close(values, expected, **CLOSE)


# Temperature


def test_a_temperature_divides_the_logits_whoever_asks_for_them():
    warm, p = policy(mask=False), policy(mask=False, temperature=0.25)
    p.load_state_dict(warm.state_dict())
    obs = torch.tensor(random_rows(np.random.default_rng(0), 5))
    at = WINDOW * torch.arange(5) + lengths_of(obs) - 1
    with torch.no_grad():
        logits = warm.get_distribution(obs).distribution.logits
        expected = (4 * logits).log_softmax(-1)
        said, _, log_prob = p(obs)
        chosen = expected.gather(1, said[:, None])[:, 0]
        assert not torch.allclose(chosen, logits.log_softmax(-1).gather(1, said[:, None])[:, 0])
        torch.testing.assert_close(p.get_distribution(obs).log_prob(said), chosen, **CLOSE)
        torch.testing.assert_close(log_prob, chosen, **CLOSE)
        torch.testing.assert_close(p.evaluate_actions(obs, said)[1], chosen, **CLOSE)
        torch.testing.assert_close(p.sequence_log_prob(obs, at, said), chosen, **CLOSE)
    greedy = [q.predict(obs.numpy(), deterministic=True)[0].tolist() for q in (warm, p)]
    assert greedy[0] == greedy[1]


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), "hot"])
def test_a_temperature_is_a_number_above_0(temperature):
    with pytest.raises(ValueError, match=r"temperature(: expected a| must be a finite) number"):
        policy(temperature=temperature)


# Memory and compilation


def test_flags_reach_every_backbone():
    p = policy(
        execution={"gradient_checkpointing": True, "compile": True}, share_features_extractor=False
    )
    for backbone in (p.backbone, p.value_backbone):
        assert backbone.gradient_checkpointing
        assert backbone._compiled_call_impl is not None
    assert policy().backbone._compiled_call_impl is None


# Inside the algorithms


BRIEF = {"n_steps": 8, "batch_size": 16}
OWN = {"policy_kwargs": {"share_features_extractor": False}}
PLAIN, MASKED = (PPO, GPTPolicy), (MaskablePPO, MaskableGPTPolicy)
ALGORITHMS = {
    "ppo": (*PLAIN, {**BRIEF, "n_epochs": 2}),
    "ppo-episodes": (*PLAIN, {**BRIEF, "rollout_buffer_class": EpisodeRolloutBuffer}),
    "ppo-separate": (*PLAIN, {**BRIEF, **OWN}),
    "a2c": (A2C, GPTPolicy, {}),
    "a2c-separate": (A2C, GPTPolicy, OWN),
    "maskable-ppo": (*MASKED, {**BRIEF, "n_epochs": 2}),
    "maskable-ppo-separate": (*MASKED, {**BRIEF, **OWN}),
    "maskable-ppo-episodes": (
        *MASKED, {**BRIEF, "rollout_buffer_class": MaskableEpisodeRolloutBuffer},
    ),
}  # fmt: skip


BY_DAY = ("ppo", "a2c", "a2c-separate", "maskable-ppo", "maskable-ppo-episodes")


@pytest.mark.parametrize("name", by_day(ALGORITHMS, *BY_DAY))
def test_learns_evaluates_saves_and_loads(name, tmp_path):
    algorithm, policy_class, options = ALGORITHMS[name]
    options = {**options, "policy_kwargs": {**SMALL, **options.get("policy_kwargs", {})}}
    model = algorithm(policy_class, make_vec_env(Echo, 4, seed=0), seed=0, **options)
    model.learn(64)
    evaluate_policy(model, make_vec_env(Echo, 2, seed=1), n_eval_episodes=4)
    model.learn(64, reset_num_timesteps=False)
    model.save(tmp_path / "model")
    loaded = algorithm.load(tmp_path / "model")
    obs = np.stack([Echo().reset(seed=i)[0] for i in range(6)])
    for deterministic in (True, False):
        torch.manual_seed(0)
        expected = model.predict(obs, deterministic=deterministic)[0]
        torch.manual_seed(0)
        assert expected.tolist() == loaded.predict(obs, deterministic=deterministic)[0].tolist()
    single = loaded.predict(obs[0], deterministic=True)[0]
    assert single.shape == ()
    loaded.set_env(make_vec_env(Echo, 4, seed=0))
    loaded.learn(32)


def test_a_rollout_log_probability_is_what_the_update_computes():
    model = PPO(GPTPolicy, make_vec_env(Echo, 4, seed=0), n_steps=16, policy_kwargs=SMALL, seed=0)
    _, callback = model._setup_learn(64)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 16)
    for batch in model.rollout_buffer.get(32):
        values, log_prob, _ = model.policy.evaluate_actions(
            batch.observations, batch.actions.long().flatten()
        )
        torch.testing.assert_close(log_prob, batch.old_log_prob, **CLOSE)
        torch.testing.assert_close(values.flatten(), batch.old_values, **CLOSE)


def test_fast_and_slow_training_give_the_same_policy():
    weights = []
    for fast in (True, False):
        model = PPO(
            GPTPolicy,
            make_vec_env(Echo, 4, seed=0),
            n_steps=8,
            batch_size=16,
            n_epochs=2,
            policy_kwargs={**SMALL, "execution": {"group": fast, "cache": fast}},
            seed=0,
        )
        model.learn(96)
        weights.append(model.policy.parameters_to_vector())
    np.testing.assert_allclose(*weights, atol=1e-4)


def test_a_policy_alone_can_be_saved_and_loaded(tmp_path):
    p = policy(tie=False)
    p.save(tmp_path / "policy.pt")
    loaded = GPTPolicy.load(tmp_path / "policy.pt")
    obs = random_rows(np.random.default_rng(0), 5)
    assert loaded.predict(obs, deterministic=True)[0].tolist() == (
        p.predict(obs, deterministic=True)[0].tolist()
    )
    assert loaded.config == p.config


@given(st.integers(0, 10**6), st.integers(1, 60))
def test_minibatches_are_whole_pieces_of_episodes(seed, batch_size):
    rng = np.random.default_rng(seed)
    starts = rng.random((13, 5)) < 0.3
    batches = list(episode_batches(starts, batch_size, rng))
    assert sorted(np.concatenate(batches).tolist()) == list(range(65))
    place = {int(i): n for n, batch in enumerate(batches) for i in batch}
    for env in range(5):
        for t in range(1, 13):
            if not starts[t, env]:
                assert place[env * 13 + t] == place[env * 13 + t - 1]


# Errors


@pytest.mark.parametrize(
    ("observations", "actions", "message"),
    [
        (spaces.Box(0, 1, (4,)), spaces.Discrete(2), "expected observations Box"),
        (spaces.Discrete(3), spaces.Discrete(2), "Use the token view of the task"),
        (box(4), spaces.Discrete(V + 1), rf"expected actions Discrete\({V}\)"),
    ],
)
def test_spaces_that_are_no_tokens_are_explained(observations, actions, message):
    with pytest.raises(ValueError, match=message):
        GPTPolicy(observations, actions, lambda _: 1e-3)


def test_sde_is_refused():
    with pytest.raises(ValueError, match="use_sde=True is for continuous actions"):
        policy(use_sde=True)
