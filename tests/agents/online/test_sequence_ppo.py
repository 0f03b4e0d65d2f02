"""Sequence PPO: what it computes is what stock PPO computes, on the same rollout."""

import inspect
from dataclasses import is_dataclass

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.wrappers import TimeLimit
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

import agents
import dialgym
from agents import GRPO, GPTPolicy, SequencePPO
from agents.models.masking import unpacked_bits
from tests.support.by_day import by_day
from tests.support.resuming import assert_comes_back
from tests.support.toy_tokens import Echo

SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}
STEPS = {"gae_lambda": 0.95, "n_steps": 10, "n_epochs": 1, "seed": 0, "policy_kwargs": SMALL}


def limited(limit: int = 3):
    return TimeLimit(Echo(turns=3, said=2), limit)


def collected(algorithm, env, **settings):
    model = algorithm(GPTPolicy, env, **{**STEPS, **settings})
    torch.nn.init.normal_(model.policy.value_head.linear.weight)
    _, callback = model._setup_learn(10_000)
    callback.on_training_start({}, {})
    torch.manual_seed(1)
    for _ in range(2):  # the second begins in the middle of dialogues
        model.collect_rollouts(model.env, callback, model.rollout_buffer, 10)
    return model


def assert_close(got: np.ndarray, expected: np.ndarray) -> None:
    """Equal up to 1e-5 of the largest number: sums are rounded otherwise on other processors."""
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def gradient(model) -> np.ndarray:
    model.policy.optimizer = torch.optim.SGD(model.policy.parameters(), lr=1.0)
    model._update_current_progress_remaining(0, 1)
    model.lr_schedule = lambda _: 1.0
    before = model.policy.parameters_to_vector()
    model.train()
    return before - model.policy.parameters_to_vector()


SETTINGS = [
    {"ent_coef": 0.1, "gamma": 0.9, "gae_lambda": 0.8},
    {"clip_range_vf": 0.1, "normalize_advantage": False, "vf_coef": 1.0, "gamma": 0.99},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("micro_batch_tokens", [None, 40])
def test_loss_and_gradient_are_those_of_stock_ppo(settings, micro_batch_tokens):
    stock = collected(PPO, make_vec_env(limited, 6, seed=0), batch_size=60, **settings)
    ours = collected(
        SequencePPO,
        make_vec_env(limited, 6, seed=0),
        batch_size=60,
        compute={"micro_batch_tokens": micro_batch_tokens},
        max_grad_norm=0.5,
        **settings,
    )
    buffer = stock.rollout_buffer
    for name, grid in {
        "advantages": buffer.advantages,
        "targets": buffer.returns,
        "log_probs": buffer.log_probs,
        "values": buffer.values,
        "actions": buffer.actions[..., 0],
    }.items():
        steps = ours.rollout.sequences.steps
        assert_close(getattr(ours.rollout, name).numpy(), grid.reshape(-1)[steps])
    expected, got = gradient(stock), gradient(ours)
    assert np.abs(expected).max() > 1e-3
    assert_close(got, expected)
    stock_log, our_log = stock.logger.name_to_value, ours.logger.name_to_value
    for name in ("loss", "value_loss", "policy_gradient_loss", "approx_kl", "clip_fraction"):
        assert our_log[f"train/{name}"] == pytest.approx(
            stock_log[f"train/{name}"], rel=1e-5, abs=1e-6
        )


def test_a_minibatch_in_pieces_has_the_same_gradient():
    grads = []
    for tokens in (None, 15):
        model = collected(
            SequencePPO, make_vec_env(limited, 6, seed=0), compute={"micro_batch_tokens": tokens}
        )
        grads.append(gradient(model))
    assert len(list(model.batches(np.arange(len(model.rollout.sequences.sizes))))) > 5
    assert_close(*grads)


def cut(turns: int = 2):
    """A dialogue in which each turn costs 1, and which only a limit ends."""

    class Endless(Echo):
        def step(self, action):
            observation, _, _, _, info = super().step(action)
            over = self.turn == turns
            spoke = not self.utterance  # the user has answered: a turn is over
            if over:  # cut before the learner has the floor again
                observation = np.where(np.arange(len(observation)) < len(self.tokens) - 1,
                                       observation, 0).astype(np.int32)  # fmt: skip
            return observation, -1.0 * spoke, False, over, info

    return Endless(turns=turns + 1)


def test_the_value_of_what_a_limit_cut_off_is_read_after_the_tag_of_the_learner():
    model = collected(SequencePPO, make_vec_env(cut, 6, seed=0), gamma=1.0, gae_lambda=0.0)
    read = []
    values = model.policy.evaluate_sequences

    def noted(tokens, at, *more):
        read.append(tokens.flatten()[at])
        return values(tokens, at, *more)

    model.policy.evaluate_sequences = noted
    _, callback = model._setup_learn(10_000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 10)
    tag = model.policy.token_space.learner_tag
    assert len(read[0])
    assert (read[0] == tag).all()


def test_a_limit_may_be_the_end():
    """With gamma 1 values then keep to what can be had: two turns cost 2, not what never ends."""
    models = {}
    for truncation in ("bootstrap", "terminal"):
        model = SequencePPO(
            "GPTPolicy", make_vec_env(cut, 8, seed=0), truncation=truncation, n_steps=16,
            learning_rate=0.02, vf_coef=1.0, gae_lambda=0.9, seed=0,
            policy_kwargs={"n_layer": 1, "n_head": 1, "n_embd": 8},
        )  # fmt: skip
        model.learn(8 * 16 * 10)
        models[truncation] = model.rollout_buffer.steps("values").mean()
    assert -2.2 < models["terminal"] < -0.8
    assert models["bootstrap"] < models["terminal"] - 0.5


def constructors():
    for name in agents.__all__:
        made = getattr(agents, name)
        if isinstance(made, type):
            yield name, made


def test_no_constructor_has_more_than_18_parameters():
    """Arguments of every policy of Stable-Baselines3 do not count for one of ours."""
    common = set(inspect.signature(BasePolicy.__init__).parameters)
    common |= {"lr_schedule", "use_sde"}
    for name, made in constructors():
        if made.__module__.startswith("agents.") and not is_dataclass(made):
            own = set(inspect.signature(made.__init__).parameters) - {"self"}
            own -= common if issubclass(made, BasePolicy) else set()
            assert len(own) <= 18, name


def test_many_decisions_of_a_large_vocabulary_have_the_same_losses_in_pieces(monkeypatch):
    model = collected(SequencePPO, make_vec_env(limited, 6, seed=0), ent_coef=0.1)
    whole = gradient(model)
    again = collected(SequencePPO, make_vec_env(limited, 6, seed=0), ent_coef=0.1)
    monkeypatch.setattr("agents.models.heads.MOST_LOGITS", 20)
    assert_close(gradient(again), whole)


def test_env_masks_are_those_of_the_automaton():
    """Equal masks give equal updates."""
    grads = [
        gradient(collected(SequencePPO, make_vec_env(Echo, 6, seed=0), env_masks=env_masks))
        for env_masks in (False, True)
    ]
    assert_close(*grads)


def test_masks_that_the_space_does_not_know_are_asked_of_the_env():
    hard = dialgym.sb3_vec_env("dialgym/Wordle-Hard-v0", 4, seed=0, words=20, guesses="answers")
    model = SequencePPO("GPTPolicy", hard, n_steps=20, policy_kwargs=SMALL, seed=0)
    assert model.env_masks
    model.learn(80)
    for batch in model.batches(np.arange(len(model.rollout.sequences.sizes))):
        allowed = unpacked_bits(batch.allowed, int(hard.action_space.n))
        assert allowed[torch.arange(len(allowed)), batch.actions].all()
        assert 0 < allowed.float().mean() < 0.9
    assert not SequencePPO("GPTPolicy", dialgym.sb3_vec_env("Wordle-20-v0", 2)).env_masks


def test_the_weight_of_the_entropy_may_be_a_schedule():
    model = collected(SequencePPO, make_vec_env(Echo, 4, seed=0), ent_coef=lambda left: 0.1 * left)
    [batch] = model.batches(np.arange(len(model.rollout.sequences.sizes)))
    with torch.no_grad():
        losses = []
        for left in (1.0, 0.25, 0.0):
            model._update_current_progress_remaining(1 - left, 1)
            loss, metrics = model.loss(batch)
            losses.append(loss + 0.1 * left * metrics["entropy"])
    torch.testing.assert_close(losses[0], losses[1])
    torch.testing.assert_close(losses[0], losses[2])


def test_the_update_stops_at_the_target_divergence():
    def run(target):
        model = collected(SequencePPO, make_vec_env(Echo, 6, seed=0), n_epochs=8, target_kl=target)
        for group in model.policy.optimizer.param_groups:
            group["lr"] = 0.05
        model.lr_schedule = lambda _: 0.05
        model.train()
        return model._n_updates

    assert run(None) == 8
    assert run(1e-4) < 8


def test_distance_from_the_reference_costs_reward():
    model = collected(SequencePPO, make_vec_env(Echo, 6, seed=0), kl={"coef": 0.5, "target": 0.1})
    with torch.no_grad():
        model.policy.policy_head.weight += torch.randn_like(model.policy.policy_head.weight)
    _, callback = model._setup_learn(10_000, reset_num_timesteps=False)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 10)
    rollout, buffer = model.rollout, model.rollout_buffer
    kl = rollout.log_probs - rollout.reference_log_probs
    assert kl.abs().max() > 0.1
    rewards, values = buffer.steps("rewards"), buffer.steps("values")
    cost = 0.5 * rollout.sequences.grid(kl, rewards.shape)
    expected, _ = model.advantages(rewards - cost, values)
    got = rollout.sequences.grid(rollout.advantages, rewards.shape)
    np.testing.assert_allclose(got, expected, atol=1e-5)
    model.train()
    assert model.logger.name_to_value["reference/kl_coef"] == 0.5
    assert model.kl_coef != 0.5


def test_the_reference_is_the_policy_that_learning_began_with(tmp_path):
    model = SequencePPO(GPTPolicy, make_vec_env(Echo, 4, seed=0), **{**STEPS, "kl": {"coef": 0.1}})
    with torch.no_grad():
        model.policy.backbone.wte.weight.normal_()
    begun = model.policy.backbone.wte.weight.clone()
    model.learn(80)
    assert torch.equal(model.reference.backbone.wte.weight, begun)
    assert not torch.equal(model.policy.backbone.wte.weight, begun)
    model.save(tmp_path / "model")
    loaded = SequencePPO.load(tmp_path / "model", make_vec_env(Echo, 4, seed=0))
    assert torch.equal(loaded.reference.backbone.wte.weight, begun)
    loaded.learn(40, reset_num_timesteps=False)
    assert torch.equal(loaded.reference.backbone.wte.weight, begun)
    loaded.learn(40)
    assert torch.equal(loaded.reference.backbone.wte.weight, begun), "only on request"
    loaded.reference.follow(loaded.policy)
    assert torch.equal(loaded.reference.backbone.wte.weight, loaded.policy.backbone.wte.weight)


@pytest.mark.parametrize(
    ("settings", "tolerance"),
    [
        ({"offload": True}, 0.0),
        ({"dtype": "bfloat16"}, 0.02),
        ({"dtype": "float16"}, 0.002),
        ({"dtype": "bfloat16", "offload": True}, 0.02),
    ],
    ids=str,
)
def test_a_reference_may_be_small_and_rest_elsewhere(settings, tolerance, tmp_path):
    """Half the bytes, log-probabilities within rounding; offloading alone changes no bit."""
    kl = {"coef": 0.1}
    exact, other = (
        collected(SequencePPO, make_vec_env(Echo, 4, seed=0), kl={**kl, **more})
        for more in ({}, settings)
    )
    found, expected = (model.rollout.reference_log_probs.numpy() for model in (other, exact))
    np.testing.assert_allclose(found, expected, atol=tolerance, rtol=0)
    sizes = [sum(p.nbytes for p in model.reference.parameters()) for model in (exact, other)]
    assert sizes[0] == sizes[1] * (2 if "dtype" in settings else 1)
    other.save(tmp_path / "model")
    loaded = SequencePPO.load(tmp_path / "model", make_vec_env(Echo, 4, seed=0))
    for ours, theirs in zip(loaded.reference.parameters(), other.reference.parameters()):
        assert ours.dtype == theirs.dtype
        assert torch.equal(ours, theirs)


def test_bfloat16_comes_near_float32_and_ratios_start_at_one():
    exact = collected(SequencePPO, make_vec_env(Echo, 6, seed=0), batch_size=60)
    rough = collected(
        SequencePPO, make_vec_env(Echo, 6, seed=0), batch_size=60, compute={"autocast": "bf16"}
    )
    got, expected = gradient(rough), gradient(exact)
    assert rough.logger.name_to_value["train/clip_fraction"] == 0
    assert rough.logger.name_to_value["train/approx_kl"] < 1e-6
    assert np.corrcoef(got, expected)[0, 1] > 0.9


@pytest.mark.parametrize(
    ("algorithm", "pool"),
    by_day(
        [(SequencePPO, DummyVecEnv), (GRPO, DummyVecEnv), (SequencePPO, SubprocVecEnv)],
        (SequencePPO, DummyVecEnv),
    ),
)
def test_learns_in_stock_pools_saves_and_loads(algorithm, pool, tmp_path):
    settings = {"n_steps": 10, "batch_size": 32, "seed": 0, "policy_kwargs": SMALL}
    if algorithm is GRPO:
        settings["group_size"] = 2
    env = make_vec_env(Echo, 2, seed=0, vec_env_cls=pool)
    model = algorithm("GPTPolicy", env, **settings)
    model.learn(160)
    assert model.num_timesteps >= 160
    mean, _ = evaluate_policy(model, make_vec_env(Echo, 2, seed=1), n_eval_episodes=4)
    assert 0 <= mean <= 2
    loaded = assert_comes_back(model, tmp_path / "model.zip")
    loaded.set_env(env)
    loaded.learn(80, reset_num_timesteps=False)
    assert loaded.num_timesteps >= 240
    env.close()


def test_with_adapters_the_reference_is_the_model_without_them():
    model = SequencePPO(
        "GPTPolicy",
        make_vec_env(Echo, 4, seed=0),
        n_steps=10,
        kl={"coef": 0.1},
        learning_rate=0.01,
        policy_kwargs={**SMALL, "lora": {"r": 2}},
        seed=0,
    )
    plain = GPTPolicy(model.observation_space, model.action_space, lambda _: 1e-3, **SMALL)
    frozen = {k.replace(".base_layer", ""): v for k, v in model.policy.state_dict().items()}
    plain.load_state_dict({k: frozen[k] for k in plain.state_dict()})
    model.learn(120)
    batch = next(model.batches(np.arange(len(model.rollout.sequences.sizes))))
    read = batch.tokens, batch.at, batch.actions
    expected = plain.sequence_log_prob(*read)
    torch.testing.assert_close(model.reference.log_prob(*read), expected, atol=1e-5, rtol=1e-4)
    assert (model.policy.sequence_log_prob(*read) - expected).abs().max() > 1e-2
    ours = {id(p) for p in model.policy.parameters()}
    shared = [p for p in model.reference.backbone.parameters() if id(p) in ours]
    assert shared
    assert not any(p.requires_grad for p in shared)
    assert sum(p.numel() for p in model.reference.parameters()) < sum(p.numel() for p in shared)


def test_a_learner_begun_from_adapters_is_at_no_distance_from_its_reference():
    def learner(**settings):
        kwargs = {**SMALL, "lora": {"r": 2}}
        env = make_vec_env(Echo, 4, seed=0)
        return SequencePPO("GPTPolicy", env, n_steps=10, policy_kwargs=kwargs, seed=0, **settings)

    first = learner(learning_rate=0.03)
    first.learn(160)
    second = learner(kl={"coef": 0.1}, learning_rate=0.01)
    agents.start_from(second.policy, first)
    second.learn(1)
    assert abs(second.logger.name_to_value["reference/kl"]) < 1e-6
    second.learn(40, reset_num_timesteps=False)
    assert second.logger.name_to_value["reference/kl"] != 0


def test_masks_can_be_handed_to_predict():
    model = SequencePPO("GPTPolicy", make_vec_env(Echo, 2), policy_kwargs=SMALL, seed=0)
    obs = np.stack([Echo().reset(seed=i)[0] for i in range(3)])
    masks = np.zeros((3, model.action_space.n), bool)
    masks[np.arange(3), [5, 6, 7]] = True
    assert model.predict(obs, action_masks=masks)[0].tolist() == [5, 6, 7]
    assert model.predict(obs[0], action_masks=masks[0])[0] == 5


class PaddedLeft(gymnasium.ObservationWrapper):
    """The same windows with their padding in front."""

    def observation(self, observation):
        return np.roll(observation, (observation == 0).sum())


def test_padding_in_front_changes_nothing():
    def padded():
        return PaddedLeft(limited())

    runs = [collected(SequencePPO, make_vec_env(make, 6, seed=0)) for make in (limited, padded)]
    sizes = [len(run.rollout.sequences.sizes) for run in runs]
    assert sizes[0] == sizes[1] < 60
    assert_close(*map(gradient, runs))


def test_after_a_callback_has_stopped_it_goes_on_from_what_the_env_shows():
    model = SequencePPO("GPTPolicy", make_vec_env(limited, 4, seed=0), **STEPS)
    model.learn(1_000, callback=lambda found, _: found["self"].num_timesteps < 8)
    shown = [env.unwrapped._observation() for env in model.env.envs]
    np.testing.assert_array_equal(model._last_obs, shown)


def test_the_norm_of_gradients_may_be_set_later():
    model = SequencePPO("GPTPolicy", make_vec_env(limited, 2, seed=0), **STEPS)
    model.max_grad_norm = 1e-9
    before = model.policy.parameters_to_vector()
    model.learn(20)
    assert model.updater.max_grad_norm == 1e-9
    assert np.isfinite(model.policy.parameters_to_vector() - before).all()
