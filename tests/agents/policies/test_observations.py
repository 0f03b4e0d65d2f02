"""Observations with an action mask or features beside the tokens."""

import warnings
from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv

import agents
import dialgym
from agents import GPTPolicy, SequencePPO
from agents.models.masking import unpacked_bits
from agents.models.observations import Observed
from dialgym.language.tokenizers import FIRST_TEXT
from tests.support.toy_policies import CLOSE, SMALL, random_rows
from tests.support.toy_tokens import Echo, V, box

LETTERS = V - FIRST_TEXT


class Masked(Echo):
    """Only the env knows which letter may be said: that of the user, which is the right one."""

    def __init__(self) -> None:
        super().__init__(turns=2)
        self.observation_space = box(12, masked=False)

    def action_masks(self) -> np.ndarray:
        masks = np.zeros(V, bool)
        masks[self.letter if not self.utterance else 2] = True  # then <end>
        return masks


class Shown(Echo):
    """The letter to say is not in the words: features show it, as an image might."""

    def __init__(self) -> None:
        super().__init__(turns=1)
        shown = spaces.Box(0, 1, (2, 2), np.float32)
        self.observation_space = spaces.Dict({"tokens": box(6, 1), "features": shown})

    def _ask(self) -> None:
        super()._ask()
        self.tokens[-3] = FIRST_TEXT  # the user always says the same

    def _observation(self):
        row = np.zeros(6, np.int32)
        row[: len(self.tokens)] = self.tokens
        features = np.zeros(4, np.float32)
        features[self.letter - FIRST_TEXT] = 1
        return {"tokens": row, "features": features.reshape(2, 2)}


@pytest.mark.slow
def test_a_policy_that_is_shown_what_to_say_learns_it(tmp_path):
    env = make_vec_env(Shown, 32, seed=0)
    kwargs = {"n_layer": 1, "n_embd": 32, "n_head": 2}
    settings = {"n_steps": 8, "batch_size": 128, "learning_rate": 0.01, "vf_coef": 0.1}
    model = SequencePPO("GPTPolicy", env, ent_coef=0.2, policy_kwargs=kwargs, seed=0, **settings)
    model.learn(32 * 8 * 40)
    mean, _ = evaluate_policy(model, make_vec_env(Shown, 4, seed=1), n_eval_episodes=40)
    assert mean > 0.9  # 0.25 by chance
    model.save(tmp_path / "model")
    loaded = agents.load(tmp_path / "model.zip")
    seen = [Shown().reset(seed=i)[0] for i in range(6)]
    batch = {key: np.stack([one[key] for one in seen]) for key in seen[0]}
    expected = model.predict(batch, deterministic=True)[0]
    assert loaded.predict(batch, deterministic=True)[0].tolist() == expected.tolist()


def shown_policy(**settings):
    space = Shown().observation_space
    torch.manual_seed(0)
    kwargs = {"n_layer": 2, "n_head": 2, "n_embd": 16}
    policy = GPTPolicy(space, spaces.Discrete(V), lambda _: 1e-3, **kwargs, **settings)
    torch.nn.init.normal_(policy.value_head.linear.weight)
    return policy


@pytest.mark.parametrize("shared", [True, False])
def test_cached_readings_notice_other_features(shared):
    cached = shown_policy(share_features_extractor=shared)
    plain = shown_policy(share_features_extractor=shared, execution={"cache": False})
    plain.load_state_dict(cached.state_dict())
    rng = np.random.default_rng(0)
    rows, features = random_rows(rng, 5)[:, :6], rng.random((5, 2, 2)).astype(np.float32)
    rows[:, 0] = 1
    for _ in range(20):
        changed = rng.random(5) < 0.4
        features[changed] = rng.random((int(changed.sum()), 2, 2))
        longer = rng.random(5) < 0.5
        rows[longer] = np.where(np.arange(6) < 1, 1, random_rows(rng, 5)[:, :6])[longer]
        observation = {"tokens": torch.tensor(rows), "features": torch.tensor(features)}
        with torch.no_grad():
            values = cached.predict_values(observation)
            torch.testing.assert_close(values, plain.predict_values(observation), **CLOSE)
            logits = [p.get_distribution(observation).distribution.logits for p in (cached, plain)]
        torch.testing.assert_close(*logits, **CLOSE)
        actions = torch.full((5,), FIRST_TEXT)
        torch.testing.assert_close(
            cached.evaluate_actions(observation, actions)[0], values, **CLOSE
        )
        part = Observed.of(observation).select(np.array([3, 1]))
        with torch.no_grad():
            torch.testing.assert_close(cached.predict_values(part), values[[3, 1]], **CLOSE)


def test_the_stock_ppo_reads_features_too():
    model = PPO(GPTPolicy, make_vec_env(Shown, 4, seed=0), n_steps=8, batch_size=16, seed=0,
                policy_kwargs=SMALL)  # fmt: skip
    before = model.policy.features.linear.weight.clone()
    model.learn(64)
    assert not torch.equal(model.policy.features.linear.weight, before)


def wrapped():
    return dialgym.MaskedObservation(Masked())


def test_masks_of_the_observation_hold_in_training_and_in_evaluate_policy():
    model = SequencePPO("GPTPolicy", make_vec_env(wrapped, 4, seed=0), n_steps=12, seed=0,
                        policy_kwargs=SMALL)  # fmt: skip
    assert not model.env_masks
    model.learn(48)
    for batch in model.batches(np.arange(len(model.rollout.sequences.sizes))):
        allowed = unpacked_bits(batch.allowed, V)
        assert (allowed.sum(-1) == 1).all()
        assert allowed[torch.arange(len(allowed)), batch.actions].all()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model.predict(wrapped().reset(seed=0)[0])
    mean, _ = evaluate_policy(model, make_vec_env(wrapped, 2, seed=1), n_eval_episodes=6)
    assert mean == 2  # the only letter that may be said is the right one


@pytest.mark.parametrize(
    ("algorithm", "policy"),
    [(agents.UtteranceILQL, {}), (agents.CHAI, {}),
     (agents.OfflineArCHer, {"decoding": {"candidates": 2}})],
)  # fmt: skip
def test_whole_utterances_are_chosen_where_masks_are_observed(algorithm, policy):
    plain = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 2, seed=0)
    rows = [partial(make_masked, "dialgym/Wordle-20-v0") for _ in range(2)]
    seen, masked = plain.reset(), DummyVecEnv(rows)
    allowed = np.ones((2, plain.action_space.n), np.int8)
    said = []
    for env, observation in (
        (plain, seen),
        (masked, {"observation": seen, "action_mask": allowed}),
    ):
        model = algorithm("GPTPolicy", env, policy_kwargs={**SMALL, **policy}, seed=0, device="cpu")
        said.append(model.predict(observation, deterministic=True)[0].tolist())
    assert said[0] == said[1]


def make_masked(env_id):
    return dialgym.MaskedObservation(gymnasium.make(env_id))


def test_predict_without_masks_warns_once_where_only_the_env_knows_them():
    model = SequencePPO("GPTPolicy", make_vec_env(Masked, 4, seed=0), n_steps=12, seed=0,
                        policy_kwargs=SMALL)  # fmt: skip
    assert model.env_masks
    env = Masked()
    seen = env.reset(seed=0)[0]
    with pytest.warns(UserWarning, match=r"action_masks=env.action_masks\(\).*MaskedObservation"):
        model.predict(seen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(seen)
        assert model.predict(seen, action_masks=env.action_masks())[0] == env.letter


class Beside(gymnasium.Env):
    """Spaces alone."""

    def __init__(self, **parts) -> None:
        self.observation_space = spaces.Dict({"tokens": box(8), **parts})
        self.action_space = spaces.Discrete(V)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"action_mask": spaces.MultiBinary(3)}, rf"'action_mask' of shape \({V},\), got \(3,\)"),
        ({"image": spaces.Box(0, 1, (3,))}, "cannot read 'image' of the observations; known are"),
    ],
)
def test_what_cannot_be_read_beside_the_tokens_is_explained(parts, message):
    env = Beside(**parts)
    with pytest.raises(ValueError, match=message):
        GPTPolicy(env.observation_space, env.action_space, lambda _: 1e-3, **SMALL)
