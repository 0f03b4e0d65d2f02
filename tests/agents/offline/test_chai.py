"""CHAI: its losses against slow versions, its frozen clone, and what it says."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from stable_baselines3.common.evaluation import evaluate_policy

import agents
import dialgym
from agents import BC, CHAI
from agents.decoding.generation import read_prompts, sample_utterances
from agents.policies.utterance import prompts_within
from dialgym.language.tokenizers import FIRST_TEXT, TAGS
from tests.support.by_day import by_day
from tests.support.resuming import assert_comes_back
from tests.support.toy_dialogues import dialogues, echo, mean_losses, randomised
from tests.support.word_games import ID, assert_two_parts_are_one_run, learner


def made(games=None, policy=None, **settings):
    own = {"clone_steps": 0, "batch_size": 8, "samples": 2, "random_samples": 1}
    return learner(CHAI, games, policy, **{**own, **settings})


def mean_up_to(policy, tokens):
    return policy.backbone(torch.tensor([tokens], dtype=torch.int64))[0].mean(0)


def slow_losses(model, batch, proposed):
    """Utterance by utterance, with the replies that were proposed at their beginnings."""
    policy, n = model.policy, model.samples
    q_loss, cql_loss = [], []
    for row in range(len(batch.tokens)):
        tokens = batch.tokens[row, : batch.lengths[row]].tolist()
        own = batch.is_action[row]
        begins = [p for p in np.flatnonzero(own) if not own[p - 1]]
        ends = [p + 1 for p in np.flatnonzero(own) if p + 1 == len(own) or not own[p + 1]]
        if batch.truncated[row]:
            tokens.append(TAGS["system"])
            begins.append(len(tokens))
        whole = tuple(tokens[: max(begins + ends)])
        replies = [proposed[whole, p] for p in begins]
        for i, (p, q) in enumerate(zip(begins, ends, strict=False)):
            target = float(batch.reward[row, p:q].sum())
            if i + 1 < len(begins):
                seen = tokens[: begins[i + 1]]
                means = [mean_up_to(policy, [*seen, *reply]) for reply in replies[i + 1][:n]]
                worth = [min(head(m).item() for head in policy.target_q_heads) for m in means]
                target += model.gamma * max(worth)
            own_mean = mean_up_to(policy, tokens[:q])
            others = [mean_up_to(policy, [*tokens[:p], *reply]) for reply in replies[i]]
            for head in policy.q_heads:
                q_loss.append((head(own_mean)[0] - target) ** 2)
                values = torch.stack([head(m)[0] for m in [own_mean, *others]])
                cql_loss.append(-values.log_softmax(0)[0])
    count = len(q_loss) / 2
    return sum(q_loss) / count, sum(cql_loss) / count


@pytest.mark.parametrize("most_tokens", [None, 60])
def test_losses_and_gradients_are_those_of_a_slow_version(most_tokens, games, monkeypatch):
    model = randomised(made(games, gamma=0.8, cql_weight=0.3))
    batch = games.tokens().with_token_rewards(0.25).batch(np.arange(4), trim=True)
    cut = np.array([False, True, False, False])
    batch = batch._replace(truncated=cut, terminated=~cut)
    proposed, propose = {}, model.propose

    def recording(part):
        drawn = propose(part)
        for i, place in enumerate(part.at[part.begins].tolist()):
            row, column = divmod(place, part.observations.shape[1])
            last = int(part.at[part.at // part.observations.shape[1] == row].max()) + 1
            whole = part.observations.flatten()[row * part.observations.shape[1] : last]
            pairs = zip(drawn.tokens[i], drawn.lengths[i], strict=True)
            proposed[tuple(whole.tolist()), column + 1] = [
                tokens[:length].tolist() for tokens, length in pairs
            ]
        return drawn

    monkeypatch.setattr(model, "propose", recording)
    figures = mean_losses(model, batch, most_tokens)
    assert set(figures) == {"loss", "q_loss", "cql_loss", "q", "v"}
    found = {n: p.grad.clone() for n, p in model.policy.named_parameters() if p.grad is not None}
    model.policy.zero_grad()

    q_loss, cql_loss = slow_losses(model, batch, proposed)
    assert figures["q_loss"] == pytest.approx(q_loss.item(), rel=1e-4)
    assert figures["cql_loss"] == pytest.approx(cql_loss.item(), rel=1e-4)
    loss = q_loss + 0.3 * cql_loss
    assert figures["loss"] == pytest.approx(loss.item(), rel=1e-4)
    loss.backward()
    assert {name.split(".")[0] for name in found} == {"q_heads"}
    for name, gradient in found.items():
        expected = dict(model.policy.named_parameters())[name].grad
        torch.testing.assert_close(gradient, expected, atol=2e-5, rtol=1e-3)


def test_it_clones_first_and_never_again(games):
    model, clone = made(games, clone_steps=3), learner(BC, games, batch_size=8)
    model.learn(3)
    clone.learn(3)
    language = {n: p.clone() for n, p in clone.policy.named_parameters() if "value" not in n}
    own = dict(model.policy.named_parameters())
    for name, weight in language.items():
        torch.testing.assert_close(own[name], weight, atol=1e-5, rtol=1e-4)
    before = {name: weight.clone() for name, weight in own.items()}
    model.learn(2, reset_num_timesteps=False)
    changed = {n.split(".")[0] for n, w in own.items() if not torch.equal(before[n], w)}
    assert changed == {"q_heads", "target_q_heads"}
    assert not any(own[name].requires_grad for name in language)  # nor in several processes


def test_the_best_reply_is_that_of_the_greatest_lesser_target_value(games):
    model = randomised(made(games, {"decoding": {"candidates": 4}}))
    env = dialgym.sb3_vec_env(ID, 3, seed=1)
    obs = torch.as_tensor(env.reset())
    with torch.no_grad():
        prompts = read_prompts(model.policy, obs, 6)
        drawn = sample_utterances(model.policy, prompts, 4, keep_hidden=True)
        worth = model.policy.utterance_q(prompts, drawn)
        for row in range(3):
            for j in range(4):
                said = drawn.tokens[row, j, : drawn.lengths[row, j]].tolist()
                seen = obs[row, : prompts.lengths[row]].tolist()
                mean = mean_up_to(model.policy, [*seen, *said])
                lesser = min(head(mean).item() for head in model.policy.target_q_heads)
                assert worth[row, j].item() == pytest.approx(lesser, abs=1e-4)


@pytest.mark.parametrize("clone_steps", by_day([0, 2, 4], 2))
def test_a_run_in_two_parts_is_the_same_as_one(clone_steps, games, tmp_path):
    assert_two_parts_are_one_run(lambda: made(games, clone_steps=clone_steps), games, tmp_path)


def test_it_begins_with_a_clone_and_comes_back_as_it_was(games, tmp_path):
    model, clone = made(games), learner(BC, games)
    torch.nn.init.normal_(clone.policy.backbone.wte.weight)
    agents.start_from(model.policy, clone)
    assert torch.equal(model.policy.backbone.wte.weight, clone.policy.backbone.wte.weight)
    loaded = assert_comes_back(model.learn(2), tmp_path / "model.zip")
    mean, _ = evaluate_policy(loaded, dialgym.sb3_vec_env(ID, 4, seed=1), 4, warn=False)
    assert -6 <= mean <= 0


@pytest.mark.slow
def test_it_learns_which_replies_are_worth_more():
    data = dialogues(200)
    paid = replace(data, reward=0 * data.reward).with_token_rewards(by_token={FIRST_TEXT: 1.0})
    kwargs = {"n_layer": 1, "n_head": 2, "n_embd": 16, "decoding": {"candidates": 12}}
    settings = {"learning_rate": 3e-3, "batch_size": 32, "tau": 0.05, "policy_kwargs": kwargs}
    settings |= {"clone_steps": 30, "samples": 3, "random_samples": 2}
    model = CHAI("GPTPolicy", echo(), paid, seed=0, **settings).learn(160)
    env = echo(rows=60)
    env.seed(0)
    said = model.predict(env.reset(), deterministic=True)[0]
    assert np.mean(said == FIRST_TEXT) > 0.9  # a quarter of what the clone says


def test_states_within_sequences_are_those_of_the_dialogues_read_alone(games):
    model = made(games)
    torch.nn.init.normal_(model.policy.backbone.wte.weight, std=0.3)
    batch = model.batch(games.tokens().batch(np.arange(5), trim=True))
    within = prompts_within(model.policy, batch, batch.begins)
    tokens = torch.nn.functional.pad(within.tokens, (0, games.tokens().window))
    alone = read_prompts(model.policy, tokens[:, : games.tokens().window], 6)
    assert len(within) == int(batch.begins.sum()) > 5
    for name in ("lengths", "states", "room"):
        assert getattr(within, name).tolist() == getattr(alone, name).tolist(), name
    torch.testing.assert_close(within.hidden, alone.hidden, atol=1e-5, rtol=1e-4)
    uniform = torch.rand(len(within), 3, 6, generator=torch.Generator().manual_seed(0))
    first, second = (
        sample_utterances(model.policy, prompts, 3, uniform, keep_hidden=True)
        for prompts in (within, alone)
    )
    assert torch.equal(first.tokens, second.tokens)
    torch.testing.assert_close(first.hidden, second.hidden, atol=1e-5, rtol=1e-4)
