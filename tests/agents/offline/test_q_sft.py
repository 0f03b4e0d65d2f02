"""Q-SFT: its loss against slow versions, the Q that it comes to, and what it learns to say."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.evaluation import evaluate_policy

import agents
import dialgym
from agents import QSFT
from agents.buffers.stored import DecisionBatch
from agents.offline.q_sft import log_total
from dialgym.language.tokenizers import TAGS
from tests.support.toy_dialogues import dialogues, echo, mean_losses, randomised
from tests.support.word_games import assert_two_parts_are_one_run, learner

OWN_TRUNK = {"share_features_extractor": False, "mask": False}


def made(games=None, policy=None, **settings):
    return learner(QSFT, games, policy, **settings)


def slow_losses(model, batch):
    """Means of the losses, decision by decision, each prefix read by itself."""
    net, (low, high) = model.policy, model.value_range
    q_loss, policy_loss, weights, count = 0.0, 0.0, 0.0, 0
    for row in range(len(batch.tokens)):
        places = np.flatnonzero(batch.is_action[row])
        prefixes = [batch.tokens[row, :p] for p in places]
        if batch.truncated[row]:
            whole = batch.tokens[row, : batch.lengths[row]]
            prefixes.append(np.append(whole, TAGS["system"]))
        states = []
        for prefix in prefixes:
            tokens = torch.from_numpy(prefix.astype(np.int64))[None]
            hidden = value = slow = net.backbone(tokens)[0, -1]
            if net.value_backbone is not None:
                value, slow = (t(tokens)[0, -1] for t in (net.value_backbone, net.target_backbone))
            open_ = np.ones(net.action_space.n, bool)
            if net.masker is not None:
                automaton = net.observation_space.automaton
                said = prefix[np.flatnonzero(prefix == TAGS["system"])[-1] + 1 :]
                open_ = automaton.allowed[automaton.walk(said)]
            choices = np.flatnonzero(open_)
            log_pi = net.policy_head(hidden)[choices].log_softmax(0)
            slow_h = torch.stack([head(slow)[choices] for head in net.target_q_heads]).amin(0)
            pi = log_pi.detach().exp()
            q = slow_h.exp() / (1 + (pi * slow_h.exp()).sum())
            best = q[pi >= model.support * pi.max()].max().item()
            states.append((choices.tolist(), log_pi, value, best))
        for i, place in enumerate(places):
            choices, log_pi, value, _ = states[i]
            said, pi = choices.index(batch.tokens[row, place]), log_pi.detach().exp()
            worth = float(batch.reward[row, place])
            if i + 1 < len(states):
                worth += model.gamma * (low + (high - low) * states[i + 1][3])
            weight = min(max((worth - low) / (high - low), 0.0), 1.0)
            for head in net.q_heads:
                h = head(value)[choices]
                total = 1 + (pi * h.exp()).sum()
                p, rest = pi[said] * h[said].exp() / total, 1 / total
                q_loss = q_loss - weight * p.log() - (1 - weight) * rest.log()
            policy_loss = policy_loss - log_pi[said]
            weights, count = weights + weight, count + 1
    loss = (model.q_weight * q_loss + model.policy_weight * policy_loss) / count
    means = {"q_loss": q_loss / count, "policy_loss": policy_loss / count}
    return {"loss": loss, **means, "weight": torch.tensor(weights / count)}


@pytest.mark.parametrize("policy", [{}, OWN_TRUNK], ids=["one-trunk", "own-trunk-no-mask"])
def test_losses_and_gradients_are_those_of_a_slow_version(policy, games):
    settings = {"q_weight": 0.6, "support": 0.3, "value_range": (-5.0, 0.0)}
    model = randomised(made(games, policy, gamma=0.9, **settings))
    torch.nn.init.normal_(model.policy.backbone.wte.weight, std=0.3)
    cut = np.array([False, True, False])
    batch = games.tokens().batch(np.arange(3), gamma=0.9, trim=True)
    batch = batch._replace(truncated=cut, terminated=~cut)
    expected = slow_losses(model, batch)
    expected["loss"].backward()
    wanted = {n: p.grad.clone() for n, p in model.policy.named_parameters() if p.grad is not None}
    model.policy.zero_grad()
    found = mean_losses(model, batch, most_tokens=130)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value.item(), rel=1e-4), name
    for name, grad in wanted.items():
        weight = model.policy.get_parameter(name)
        torch.testing.assert_close(weight.grad, grad, atol=2e-5, rtol=1e-3)
    assert any(name.startswith("q_heads") for name in wanted)


def test_a_clone_that_stays_is_not_moved_by_the_correction(games):
    """The trunk in common learns from neither; without `detach` the correction moves it."""
    for losses, stays in (({"detach": ["q"]}, True), ({}, False)):
        model = made(games, policy_weight=0.0, losses=losses)
        before = {name: p.detach().clone() for name, p in model.policy.named_parameters()}
        model.learn(2)
        moved = {
            name for name, p in model.policy.named_parameters() if not torch.equal(p, before[name])
        }
        assert any(name.startswith("q_heads") for name in moved)
        assert any(name.startswith("backbone") for name in moved) != stays
        assert not any(name.startswith("policy_head") for name in moved)


def decisions(actions, rewards, not_done, allowed):
    """Decisions of which the losses read no observations."""
    n = len(actions)
    zeros = torch.zeros(n)
    return DecisionBatch(
        torch.zeros(1, n, dtype=torch.int64), torch.arange(n), actions, rewards, zeros, zeros,
        torch.ones(n, dtype=torch.bool), not_done, allowed,
    )  # fmt: skip


def test_each_loss_is_that_of_numpy_in_double_precision():
    rng, n, acts = np.random.default_rng(0), 9, 6
    model = made(value_range=(-3.0, 1.0), gamma=0.8, support=0.4)
    allowed = rng.random((n, acts)) < 0.7
    actions, rewards = rng.integers(acts, size=n), rng.normal(size=n)
    allowed[np.arange(n), actions] = True
    not_done = rng.random(n) < 0.7
    not_done[-1] = False
    logits, slow, h = (
        rng.normal(size=(n, acts)),
        rng.normal(size=(n, acts)),
        rng.normal(size=(2, n, acts)),
    )
    logits[~allowed] = -1e8
    pi = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    q = np.exp(slow) / (1 + (pi * np.exp(slow)).sum(1, keepdims=True))
    likely = allowed & (pi >= 0.4 * pi.max(1, keepdims=True))
    best = np.where(likely, q, -np.inf).max(1)
    following = np.where(not_done, -3 + 4 * np.append(best[1:], 0), 0)
    weight = np.clip((rewards + 0.8 * following + 3) / 4, 0, 1)
    total = 1 + (pi * np.exp(h)).sum(-1)
    rows = np.arange(n)
    p = pi[rows, actions] * np.exp(h[:, rows, actions]) / total
    expected = -(weight * np.log(p) - (1 - weight) * np.log(total)).sum(0)
    assert len(np.unique(weight)) > 4
    batch = decisions(*(torch.from_numpy(x) for x in (actions, rewards, not_done, allowed)))
    numbers = (torch.from_numpy(logits).log_softmax(1), torch.from_numpy(h), torch.from_numpy(slow))
    loss, found = model.loss_of_estimates(batch, *numbers)
    np.testing.assert_allclose(found["weight"], weight, rtol=1e-6)
    np.testing.assert_allclose(found["q_loss"], expected, rtol=1e-6)
    np.testing.assert_allclose(found["policy_loss"], -np.log(pi[rows, actions]), rtol=1e-6)
    np.testing.assert_allclose(loss, expected - np.log(pi[rows, actions]), rtol=1e-6)
    np.testing.assert_allclose(found["q"], (p / pi[rows, actions]).mean(0), rtol=1e-6)


def test_at_the_least_loss_q_is_what_was_earned():
    """Of a state seen often: p / pi is the mean of w, by the gradient of the loss alone."""
    generator = torch.Generator().manual_seed(0)
    log_pi = torch.randn(5, generator=generator, dtype=torch.float64).log_softmax(0)
    worth = torch.rand(5, generator=generator, dtype=torch.float64)
    model, everything = made(value_range=(0.0, 1.0)), torch.ones(5, dtype=torch.bool)
    batch = decisions(torch.arange(5), worth, ~everything, everything.expand(5, 5))
    h = torch.zeros(2, 5, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([h], max_iter=500, tolerance_grad=1e-12)

    def step():
        optimizer.zero_grad()
        of_all = h[:, None].expand(2, 5, 5)
        _, found = model.loss_of_estimates(batch, log_pi.expand(5, 5), of_all, of_all[0].detach())
        loss = (log_pi.exp() * found["q_loss"]).sum()
        loss.backward()
        return loss

    optimizer.step(step)
    q = (h - log_total(log_pi, h)[:, None]).exp()
    torch.testing.assert_close(q, worth.expand(2, 5), atol=1e-4, rtol=0)


def test_the_range_is_that_of_the_data_and_is_kept(games, tmp_path):
    model = made(games, gamma=0.9).learn(1)
    batch = games.tokens().batch(np.arange(len(games)), gamma=0.9)
    returns = batch.return_to_go[batch.is_action]
    assert model.value_range == (returns.min(), returns.max())
    model.save(tmp_path / "model")
    assert agents.load(tmp_path / "model.zip").value_range == model.value_range
    with pytest.raises(ValueError, match=r"QSFT: expected returns that differ"):
        made(games, value_range=(1.0, 1.0))
    with pytest.raises(ValueError, match=r"QSFT: value_min and value_max bound Q"):
        made(games, {"value_max": 0.0})
    with pytest.raises(ValueError, match=r"QSFT: expected support to be a number from 0 to 1"):
        made(games, support=1.5)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [{"lora": {"r": 2}}, OWN_TRUNK])
def test_a_run_in_two_parts_is_the_same_as_one(policy, games, tmp_path):
    assert_two_parts_are_one_run(lambda: made(games, policy), games, tmp_path)


def test_corrections_are_no_advantages_whoever_asks(tmp_path):
    model = made()
    for settings in ({"weights": "sign", "beta": 0.9}, {"advantage_clip": 0.1}):
        with pytest.raises(ValueError, match="ask for advantages, and there are none"):
            agents.with_decoding(model, **settings)
    assert agents.with_decoding(model, beta=2.0).policy.decoding.beta == 2.0
    model.save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match="RankedSpeaker: expected an agent with values of tokens"):
        agents.RankedSpeaker(agents.load(tmp_path / "model.zip", "cpu"))


def test_it_learns_over_acts_too(tmp_path):
    env_id = "dialgym/SlotFilling-act-v0"
    talks, env = dialgym.collect(env_id, "handcrafted", 8, seed=0), dialgym.sb3_vec_env(env_id, 2)

    def make():
        return QSFT("MlpPolicy", env, talks, policy_kwargs={"net_arch": [16]}, seed=0)

    _, model = assert_two_parts_are_one_run(make, talks, tmp_path, env)
    low, high = model.value_range
    assert low < high
    masks = np.stack(env.env_method("action_masks"))
    acts = model.predict(env.reset(), deterministic=True, action_masks=masks)[0]
    assert masks[np.arange(2), acts].all()


@pytest.mark.slow
def test_it_learns_from_random_utterances_to_say_good_ones():
    kwargs = {"n_layer": 1, "n_head": 2, "n_embd": 32}
    settings = {"learning_rate": 3e-3, "batch_size": 32, "tau": 0.05, "policy_kwargs": kwargs}
    model = QSFT("GPTPolicy", echo(), dialogues(400), seed=0, **settings).learn(200)
    mean, _ = evaluate_policy(model, echo(rows=50), 200, deterministic=False)
    assert mean > 1.5  # of 2, drawn; random letters, and so their clone, earn 0.5
