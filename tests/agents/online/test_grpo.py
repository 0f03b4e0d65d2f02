"""Group baselines: alike beginnings, one episode each, and the loss by hand."""

from string import ascii_lowercase

import numpy as np
import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env

import dialgym
from agents import GRPO
from agents.buffers.sequences import SequenceBatch
from agents.online.ppo import clipped_surrogate
from agents.online.reference import k3
from agents.online.surrogates import (
    LOSS_TYPES,
    RATIO_LEVELS,
    log_ratios,
    weighted_surrogate,
)
from dialgym.language import CharTokenizer
from dialgym.language.tokenizers import END
from tests.support.toy_tokens import Echo

SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}


def collected(env, **settings):
    model = GRPO(
        "GPTPolicy", env, n_steps=20, batch_size=10_000, policy_kwargs=SMALL, seed=0, **settings
    )
    _, callback = model._setup_learn(10_000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 20)
    return model


@pytest.mark.parametrize("task", ["echo", "wordle"])
def test_a_group_begins_alike_and_groups_differ(task):
    """Said the same to, dialogues of a group answer the same; others need not."""
    env = make_vec_env(Echo, 12, seed=0) if task == "echo" else None
    model = collected(env or dialgym.sb3_vec_env("Wordle-20-v0", 12), group_size=4)
    model._begin(model.env, np.ones(12, bool))
    said = np.array([CharTokenizer(ascii_lowercase).encode("class")]).T if task == "wordle" else []
    seen = model._last_obs
    for token in [*said, [END]] if task == "wordle" else []:
        seen = model.env.step(np.full(12, token))[0]
    groups = seen.reshape(3, 4, -1)
    assert (groups == groups[:, :1]).all()
    assert len(np.unique(groups[:, 0], axis=0)) > 1


def test_every_dialogue_is_played_once_to_its_end():
    model = collected(make_vec_env(lambda: Echo(turns=2, said=2), 8, seed=0), group_size=4)
    assert model.rollout.sequences.sizes.tolist() == [6] * 8  # two turns of two letters and an end
    returns = model.rollout_buffer.steps("rewards").sum(0)
    advantages = model.rollout.advantages.reshape(8, 6)
    assert (advantages == advantages[:, :1]).all()
    best = returns.reshape(2, 4).argmax(1)
    assert advantages[:, 0].reshape(2, 4).argmax(1).tolist() == best.tolist()


def test_the_gradient_is_that_of_the_loss_by_hand():
    model = collected(
        make_vec_env(Echo, 8, seed=0),
        group_size=4,
        kl={"coef": 0.3},
        ent_coef=0.01,
        scale_rewards=False,
    )
    with torch.no_grad():  # away from where ratio and divergence are flat
        model.policy.backbone.wpe.weight += torch.randn_like(model.policy.backbone.wpe.weight)
    everything = np.arange(8)
    count = len(model.rollout.sequences)
    means = model.updater.backward(model.loss, model.batches(everything), count)
    got = model.policy.backbone.wte.weight.grad.clone()

    model.policy.zero_grad()
    losses = []
    for batch in model.batches(everything):
        _, log_prob, entropy = model.policy.evaluate_sequences(
            batch.tokens, batch.at, batch.actions, batch.allowed
        )
        ratio = (log_prob - batch.log_probs).exp()
        worst = torch.minimum(batch.advantages * ratio, batch.advantages * ratio.clamp(0.8, 1.2))
        distance = k3(batch.reference_log_probs - log_prob)
        assert distance.max() > 0
        losses.append(-worst + 0.3 * distance - 0.01 * entropy)
    loss = torch.cat(losses).mean()
    loss.backward()
    torch.testing.assert_close(got, model.policy.backbone.wte.weight.grad)
    assert abs(means["loss"] - loss.item()) < 1e-6


def batch_of(old, advantages, rows=1):
    """Decisions in `rows` sequences of as many each."""
    tokens = torch.zeros(rows, len(old) // rows + 3)
    places = torch.arange(len(old)).reshape(rows, -1) % (len(old) // rows)
    at = (places + tokens.shape[1] * torch.arange(rows)[:, None]).flatten()
    return SequenceBatch(
        tokens, at, None, torch.as_tensor(old), torch.as_tensor(advantages), *[None] * 5
    )


def surrogate(batch, log_prob, level, clip_range=(0.2, 0.2)):
    return clipped_surrogate(batch, log_ratios(batch, log_prob, level), clip_range)


def test_losses_by_hand():
    log_prob = torch.tensor([0.5, 0.5, -0.5])
    expected = [-1.2, np.exp(0.5), 0.8]  # clipped, not clipped, clipped
    got, metrics = surrogate(batch_of(np.zeros(3), [1.0, -1, -1]), log_prob, "token")
    assert metrics["clip_fraction"].tolist() == [1, 1, 1]
    torch.testing.assert_close(metrics["approx_kl"], k3(log_prob.double()))
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    p, q = torch.tensor([0.1, 0.9]), torch.tensor([0.4, 0.6])
    exact = (p * (p / q).log()).sum()
    torch.testing.assert_close((p * k3((q / p).log())).sum(), exact)


def test_more_room_above_than_below():
    log_prob = torch.tensor([0.25, 0.5, -0.25])
    batch = batch_of(np.zeros(3), [1.0, 1, -1])
    got, metrics = surrogate(batch, log_prob, "token", (0.2, 0.3))
    np.testing.assert_allclose(got, [-np.exp(0.25), -1.3, 0.8], rtol=1e-6)
    assert metrics["clip_fraction"].tolist() == [0, 1, 1]


def gradient(loss_type, level, old, new, advantages, rows):
    log_prob = torch.tensor(new, requires_grad=True)
    batch = batch_of(old, advantages, rows)
    if loss_type == "cispo":
        ratios = log_ratios(batch, log_prob, level)
        loss, _ = weighted_surrogate(batch, log_prob, ratios, 1.2)
    else:
        loss, _ = surrogate(batch, log_prob, level)
    loss.sum().backward()
    return loss.detach().numpy(), log_prob.grad.numpy()


def test_a_sequence_has_one_ratio():
    """Of two dialogues of two decisions: mean log ratios 0.1, within, and 0.3, beyond the range."""
    new = np.array([0.3, -0.1, 0.5, 0.1])
    loss, slope = gradient("grpo", "sequence", np.zeros(4), new, [1.0, 1.0, 1.0, 1.0], 2)
    inside = np.exp(0.1)
    np.testing.assert_allclose(loss, [-inside, -inside, -1.2, -1.2], rtol=1e-6)
    np.testing.assert_allclose(slope, [-inside, -inside, 0, 0], rtol=1e-6)


def test_a_clipped_weight_does_not_silence_a_decision():
    new = np.array([0.1, 0.5, -0.5])
    loss, slope = gradient("cispo", "token", np.zeros(3), new, [1.0, 2.0, -1.0], 1)
    weights = np.array([np.exp(0.1), 1.2, np.exp(-0.5)])
    np.testing.assert_allclose(slope, -weights * [1.0, 2.0, -1.0], rtol=1e-6)
    np.testing.assert_allclose(loss, slope * new, rtol=1e-6)


@pytest.mark.parametrize("level", RATIO_LEVELS)
@pytest.mark.parametrize("loss_type", ["grpo", "cispo"])
def test_where_nothing_has_moved_every_surrogate_has_the_policy_gradient(loss_type, level):
    advantages = np.array([1.0, -2.0, 0.5, 0.0])
    old = np.log([0.1, 0.4, 0.9, 0.5])
    _, slope = gradient(loss_type, level, old, old, advantages, 2)
    np.testing.assert_allclose(slope, -advantages, rtol=1e-6)


class Uneven(Echo):
    """Dialogues of one to eight turns; a longer one is worse."""

    def __init__(self) -> None:
        super().__init__(turns=8)

    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=seed)
        self.last = int(self.np_random.integers(1, 9))
        return result

    def step(self, action):
        observation, _, done, cut, info = super().step(action)
        done = done or self.turn == self.last
        return observation, -self.last if done else 0.0, done, cut, info


def test_finished_dialogues_rest_and_only_kept_episodes_are_logged_and_counted():
    model = GRPO(
        "GPTPolicy", make_vec_env(Uneven, 24, seed=0), n_steps=40, group_size=4, seed=0,
        policy_kwargs=SMALL, stats_window_size=10,
    )  # fmt: skip
    read, policy = [], model.policy.forward

    def noted(seen, **more):
        read.append(len(seen.tokens))
        return policy(seen, **more)

    model.policy.forward = noted
    model.learn(1)
    returns = model.rollout_buffer.steps("rewards").sum(0)
    kept = len(model.rollout.sequences)
    assert model.num_timesteps == sum(read) == kept < 0.75 * 24 * len(read)
    assert read == sorted(read, reverse=True)
    assert len(model.ep_info_buffer) == 24
    logged = np.mean([episode["r"] for episode in model.ep_info_buffer])
    assert logged == pytest.approx(returns.mean())
    assert len(np.unique(returns)) > 4


def test_what_goes_on_beyond_the_steps_counts_as_it_stands():
    model = collected(make_vec_env(lambda: Echo(turns=12), 4, seed=0), group_size=2)
    assert len(model.rollout.sequences) == model.num_timesteps == 4 * 20
    assert [episode["l"] for episode in model.ep_info_buffer] == [20] * 4


def test_the_coefficient_that_is_logged_is_the_one_that_was_used():
    model = collected(make_vec_env(Echo, 8, seed=0), group_size=4, kl={"coef": 0.3, "target": 0.01})
    used = []
    loss = model.loss
    model.loss = lambda batch: used.append(model.kl_coef) or loss(batch)
    model.train()
    assert set(used) == {0.3} == {model.logger.name_to_value["reference/kl_coef"]}
    assert model.kl_coef == pytest.approx(0.3 * 0.98)


# Whole losses against one dialogue and one token at a time, in 64 bits


def dialogue_losses(batch, log_prob, reference, model):
    """Of each dialogue the losses of its tokens, without the entropy, as the papers have them."""
    width = batch.tokens.shape[1]
    for row in range(batch.tokens.shape[0]):
        tokens = [i for i, place in enumerate(batch.at.tolist()) if place // width == row]
        logs = [log_prob[i] - batch.log_probs[i].double() for i in tokens]
        if model.importance_sampling_level == "sequence":
            ratios = [torch.exp(sum(logs) / len(logs))] * len(logs)
        else:
            ratios = [torch.exp(log) for log in logs]
        losses = []
        for i, ratio in zip(tokens, ratios):
            advantage = batch.advantages[i].double()
            if model.loss_type == "cispo":
                loss = -min(ratio.detach(), model.epsilon_high) * advantage * log_prob[i]
            else:
                low, high = 1 - 0.2, 1 + model.epsilon_high
                clipped = min(max(ratio, low), high)
                loss = -min(ratio * advantage, clipped * advantage)
            gap = reference[i] - log_prob[i]
            losses.append(loss + 0.3 * (torch.exp(gap) - 1 - gap))
        yield losses


def mean_loss(dialogues, loss_type, longest):
    if loss_type == "grpo":
        return sum(sum(losses) / len(losses) for losses in dialogues) / len(dialogues)
    total = sum(sum(losses) for losses in dialogues)
    if loss_type == "dr_grpo":
        return total / (len(dialogues) * longest)
    return total / sum(len(losses) for losses in dialogues)  # of one process bnpo is dapo


@pytest.fixture(scope="module")
def uneven():
    """A rollout of dialogues of one to eight turns, in several forwards."""
    return collected(
        make_vec_env(Uneven, 8, seed=0), group_size=None, kl={"coef": 0.3}, epsilon_high=0.28,
        compute={"micro_batch_tokens": 40},
    )  # fmt: skip


@pytest.mark.parametrize("level", RATIO_LEVELS)
@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_losses_and_gradients_are_those_of_a_slow_reference(uneven, loss_type, level, monkeypatch):
    """By log-probabilities that are given, in the place of the network's float32."""
    model, new = uneven, []
    rng = torch.Generator().manual_seed(0)

    def evaluate(tokens, at, actions, *_):
        given = torch.randn(len(at), generator=rng, dtype=torch.float64) * 0.5 - 1.1
        new.append(given.requires_grad_())
        return None, given, torch.zeros_like(given)

    monkeypatch.setattr(model.policy, "evaluate_sequences", evaluate)
    monkeypatch.setattr(model, "loss_type", loss_type)
    monkeypatch.setattr(model, "importance_sampling_level", level)
    sizes = model.rollout.sequences.sizes
    assert len({*sizes.tolist()}) > 3
    means = model.updater.backward(model.loss, model.batches(np.arange(8)), int(sizes.sum()))
    assert len(new) > 1

    found, slow = [], [given.detach().clone().requires_grad_() for given in new]
    for batch, log_prob in zip(model.batches(np.arange(8)), slow, strict=True):
        reference = batch.reference_log_probs.double()
        found += [*dialogue_losses(batch, log_prob, reference, model)]
    loss = mean_loss(found, loss_type, longest=20)
    loss.backward()
    for given, expected in zip(new, slow):
        torch.testing.assert_close(given.grad, expected.grad, rtol=1e-6, atol=1e-9)
    assert means["loss"] == pytest.approx(loss.item(), rel=1e-6)


class SometimesEqual(Echo):
    """Half of the starts pay everyone alike; the others pay for the first letter that is said."""

    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=seed)
        self.alike = bool(self.np_random.integers(2))
        self.paid = 0.0
        return result

    def step(self, action):
        if not self.utterance:
            self.paid += 0.0 if self.alike else float(action)
        observation, _, done, cut, info = super().step(action)
        return observation, self.paid if done else 0.0, done, cut, info


def learned_from(model):
    """The returns of the dialogues that are learned from, as their tokens have it."""
    sequences = model.rollout.sequences
    rewards = sequences.column(model.rollout_buffer.steps("rewards")).numpy()
    return np.add.reduceat(rewards, sequences.first[:-1])


@pytest.mark.parametrize("credit", ["episode", "turn"])
def test_groups_without_variance_are_played_again_elsewhere(credit):
    env = make_vec_env(lambda: SometimesEqual(turns=2), 32, seed=0)
    model = collected(env, group_size=4, resample=20, scale_rewards="none", credit=credit)
    logged = model.logger.name_to_value
    assert 0.2 <= logged["rollout/equal_groups"] <= 0.8
    assert logged["rollout/equal_groups_left"] == 0
    assert model.rollout.sequences.sizes.tolist() == [4] * 32  # one episode of each dialogue
    rows = model.rollout.sequences.steps[model.rollout.sequences.first[:-1]] % 32
    returns = np.zeros(32)
    returns[rows] = learned_from(model)
    assert (np.ptp(returns.reshape(8, 4), axis=1) > 0).all()
    expected = (returns.reshape(8, 4) - returns.reshape(8, 4).mean(1, keepdims=True)).ravel()
    first = model.rollout.advantages.numpy()[model.rollout.sequences.first[:-1]]
    np.testing.assert_allclose(first, expected[rows], atol=1e-5)
    asked = model.rollout.sequences.tokens[:, 1].numpy()[np.argsort(rows)].reshape(8, 4)
    assert (asked == asked[:, :1]).all()  # what is played again begins alike too
    assert model.num_timesteps > len(model.rollout.sequences) == 128
    episodes = len(model.ep_info_buffer)  # the log has what was played in vain, too
    assert episodes * 4 == model.num_timesteps


def test_what_stays_without_variance_has_no_advantage():
    env = make_vec_env(lambda: SometimesEqual(turns=1), 64, seed=0)
    model = collected(env, group_size=4, resample=1, scale_rewards="none")
    logged = model.logger.name_to_value
    assert 0 < logged["rollout/equal_groups_left"] < logged["rollout/equal_groups"]
    idle = (model.rollout.advantages.reshape(16, 4, 2) == 0).all(2).all(1).float().mean()
    assert idle == pytest.approx(logged["rollout/equal_groups_left"])
    model.train()


@pytest.mark.parametrize(
    "settings", [{}, {"loss_type": "dr_grpo"}, {"compute": {"autocast": "fp16"}}], ids=str
)
def test_a_minibatch_smaller_than_a_dialogue_moves_nothing(settings):
    """There are then fewer dialogues than minibatches, and some have none."""
    env = make_vec_env(lambda: Echo(turns=2, said=2), 4, seed=0)
    more = {"n_steps": 20, "batch_size": 2, "policy_kwargs": SMALL, "target_kl": 0.5, **settings}
    model = GRPO("GPTPolicy", env, group_size=4, seed=0, device="cpu", **more).learn(24)
    assert model.logger.name_to_value["train/approx_kl"] < 0.5


class Closed(Echo):
    """Token 0 may not be said, and is an error."""

    def action_masks(self):
        masks = np.ones(self.action_space.n, bool)
        masks[0] = False
        return masks

    def step(self, action):
        assert action != 0
        return super().step(action)


def test_dialogues_that_rest_say_what_their_env_allows():
    env = make_vec_env(lambda: Closed(said=2), 8, seed=0)
    more = {"n_steps": 20, "policy_kwargs": {**SMALL, "mask": False}, "env_masks": True}
    GRPO("GPTPolicy", env, group_size=4, seed=0, **more).learn(40)
