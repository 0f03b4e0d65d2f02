"""ArCHer from stored dialogues: losses against slow versions, and what its actor learns."""

import math

import numpy as np
import pytest
import torch
from stable_baselines3.common.evaluation import evaluate_policy

from agents import OfflineArCHer
from agents.policies.utterance_critic import CriticValues
from dialgym.language.tokenizers import TAGS
from tests.support.resuming import assert_comes_back
from tests.support.toy_dialogues import dialogues, echo, mean_losses, randomised
from tests.support.word_games import learner

SHARED = {"share_features_extractor": True, "mask": False}


def made(games=None, policy=None, **settings):
    return learner(OfflineArCHer, games, policy, **settings)


def random_heads(model):
    """Heads, targets and trunks that differ, so that no term of a loss vanishes."""
    randomised(model)
    for heads in (model.policy.v_heads, model.policy.target_v_heads):
        for weight in heads.parameters():
            torch.nn.init.normal_(weight, std=0.3)
    return model


def cut_batch(games):
    """Four dialogues with rewards at every token, of which one was cut off."""
    data = games.tokens().with_token_rewards(0.25)
    cut = np.array([False, True, False, False])
    return data.batch(np.arange(4), trim=True)._replace(truncated=cut, terminated=~cut)


def utterances(batch, row):
    """Of a dialogue, where each utterance of the learner begins and ends (exclusive)."""
    own = batch.is_action[row]
    first = [p for p in np.flatnonzero(own) if not own[p - 1]]
    return [(p, next(q for q in range(p, 999) if q == len(own) or not own[q])) for p in first]


def number(value):
    return value.item() if isinstance(value, torch.Tensor) else value


def slow_losses(model, batch):
    """Means of the losses, utterance by utterance and token by token, each read from the start."""
    policy = model.policy
    sums = dict.fromkeys(("q_loss", "v_loss", "policy_loss", "q", "v", "weight"), 0.0)
    spoken = count = 0

    def read(tokens):
        tokens = torch.tensor([tokens], dtype=torch.int64)
        trunks = policy.backbone, policy.critic_trunk, policy.target_trunk
        return [trunk(tokens)[0, -1] for trunk in trunks]

    for row in range(len(batch.tokens)):
        tokens = batch.tokens[row, : batch.lengths[row]].tolist()
        tokens += [TAGS["system"]] * bool(batch.truncated[row])
        spans = utterances(batch, row)
        for i, (p, q) in enumerate(spans):
            following = tokens[: spans[i + 1][0]] if i + 1 < len(spans) else None
            if following is None and batch.truncated[row]:
                following = tokens
            (_, before, _), (_, after, slow) = read(tokens[:p]), read(tokens[:q])
            values = [head(before)[0] for head in policy.v_heads]
            worth = [head(after)[0] for head in policy.q_heads]
            for k in range(2):
                target = float(batch.reward[row, p:q].sum())
                if following is not None:
                    slow_next = read(following)[2]
                    target += model.gamma * policy.target_v_heads[k](slow_next).item()
                sums["q_loss"] += (worth[k] - target) ** 2
                gap = policy.target_q_heads[k](slow).item() - values[k]
                sums["v_loss"] += (model.expectile if gap > 0 else 1 - model.expectile) * gap**2
            advantage = (min(worth) - min(values)).item()
            weight = min(math.exp(model.awr_beta * advantage), model.awr_clip)
            sums["weight"] += weight
            sums["q"] += sum(worth) / 2
            sums["v"] += sum(values) / 2
            for place in range(p, q):
                logits = policy.policy_head(read(tokens[:place])[0])
                if policy.masker is not None:
                    automaton = policy.observation_space.automaton
                    allowed = automaton.allowed[automaton.walk(tokens[p:place])]
                    logits = logits.masked_fill(~torch.tensor(allowed), -torch.inf)
                sums["policy_loss"] -= weight * logits.log_softmax(-1)[tokens[place]]
                spoken += 1
            count += 1
    means = {name: total / count for name, total in sums.items()}
    means["policy_loss"] = sums["policy_loss"] / spoken
    loss = means["q_loss"] + means["v_loss"] + model.policy_weight * means["policy_loss"]
    return {"loss": loss, **means}


@pytest.mark.parametrize("policy", [{}, SHARED], ids=["own-trunk", "shared-no-mask"])
def test_losses_and_gradients_are_those_of_a_slow_version(policy, games):
    settings = {"policy_weight": 0.7, "expectile": 0.8, "awr_beta": 2.0, "awr_clip": 1.2}
    model = random_heads(made(games, policy, gamma=0.8, **settings))
    batch = cut_batch(games)
    expected = slow_losses(model, batch)
    expected["loss"].backward()
    wanted = {n: p.grad.clone() for n, p in model.policy.named_parameters() if p.grad is not None}
    model.policy.zero_grad()
    found = mean_losses(model, batch, most_tokens=100)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(number(value), rel=1e-4), name
    for name, weight in model.policy.named_parameters():
        assert (weight.grad is not None) == (name in wanted), name
        if name in wanted:
            torch.testing.assert_close(weight.grad, wanted[name], atol=2e-5, rtol=1e-3)
    assert any(name.startswith("v_heads") for name in wanted)
    assert not any("target" in name for name in wanted)


def test_the_critics_losses_are_those_of_numpy_in_double_precision():
    rng, model = np.random.default_rng(0), made(expectile=0.85)
    q, v, targets, slow = rng.normal(size=(4, 2, 9))
    tensors = [torch.from_numpy(x) for x in (q, v, targets)]
    found = dict(model.of_critic(CriticValues(*tensors), torch.from_numpy(slow)))
    gap = slow - v
    np.testing.assert_allclose(found["q_loss"], ((targets - q) ** 2).sum(0), rtol=1e-6)
    v_loss = (np.where(gap < 0, 1 - 0.85, 0.85) * gap**2).sum(0)
    np.testing.assert_allclose(found["v_loss"], v_loss, rtol=1e-6)
    advantages = CriticValues(*tensors).advantages
    np.testing.assert_allclose(advantages, q.min(0) - v.min(0), rtol=1e-6)


def test_all_four_targets_follow(games):
    model = made(games, tau=0.25, learning_rate=0.01)
    policy = model.policy
    pairs = [(policy.target_q_heads, policy.q_heads), (policy.target_v_heads, policy.v_heads)]
    pairs += [(policy.target_backbone, policy.value_backbone)]
    before = [[w.clone() for w in slow.parameters()] for slow, _ in pairs]
    model.learn(1)
    for (slow, fast), old in zip(pairs, before, strict=True):
        for target, source, then in zip(slow.parameters(), fast.parameters(), old, strict=True):
            torch.testing.assert_close(target, 0.75 * then + 0.25 * source, atol=1e-7, rtol=1e-5)


def test_it_speaks_as_the_actor_or_says_the_best_of_candidates(games, tmp_path):
    model = random_heads(made(games))
    model.policy.decoding.candidates = 4
    loaded = assert_comes_back(model, tmp_path / "model.zip")
    assert loaded.policy.decoding.candidates == 4
    asked = []
    for candidates in (1, 4):
        model.policy.decoding.candidates = candidates
        best_of = type(model.policy).best_of
        model.policy.best_of = lambda *a, f=best_of: asked.append(0) or f(model.policy, *a)
        seen = model.get_env().reset()
        said = model.predict(seen, deterministic=True)[0]
        assert len(asked) == (candidates > 1)
        if candidates == 1:
            probs = model.policy.get_distribution(torch.as_tensor(seen)).distribution.probs
            assert said.tolist() == probs.argmax(1).tolist()


@pytest.mark.slow
def test_it_learns_from_random_utterances_to_say_good_ones():
    kwargs = {"n_layer": 1, "n_head": 2, "n_embd": 32}
    settings = {"learning_rate": 3e-3, "batch_size": 32, "policy_kwargs": kwargs, "seed": 0}
    model = OfflineArCHer("GPTPolicy", echo(), dialogues(400), awr_beta=8.0, **settings).learn(200)
    mean, _ = evaluate_policy(model, echo(rows=50), 200, deterministic=False)
    assert mean > 1.5  # of 2, drawn; random letters, and so their clone, earn 0.5
