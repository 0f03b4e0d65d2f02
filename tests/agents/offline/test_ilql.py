"""ILQL and its kin against slow versions that read every prefix by itself."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import agents
import dialgym
from agents import BC, CQL, ILQL, PsiLearning, SingleStepRL
from agents.buffers.stored import decisions_of
from agents.offline.ilql import conservative_loss, expectile_loss
from agents.training.hyperparameters import read_hyperparameters
from dialgym.language.tokenizers import TAGS
from tests.support.toy_dialogues import mean_losses, randomised
from tests.support.word_games import ID, SMALL, assert_two_parts_are_one_run, learner

KINDS = {
    "ilql": (ILQL, {"expectile": 0.8, "cql_weight": 0.3, "cql_temperature": 2.0}),
    "awac": (ILQL, {"awac_beta": 2.0, "awac_clip": 1.5, "policy_weight": 0.7, "v_weight": 0.4}),
    "single-step": (SingleStepRL, {"q_weight": 0.5}),
    "monte-carlo": (SingleStepRL, {"returns": "monte-carlo"}),
    "cql": (CQL, {"cql_weight": 0.6}),
    "psi": (PsiLearning, {"reward_scale": 0.3}),
}
OWN_TRUNK = {"share_features_extractor": False, "mask": False}


def made(kind, games=None, policy=None, **settings):
    algorithm, own = KINDS[kind]
    return learner(algorithm, games, policy, **{**own, **settings})


def awkward_batch(games, gamma):
    """Six dialogues, of which two were cut off, one of them in the words of no list."""
    batch = games.tokens().batch(np.arange(6), gamma=gamma, trim=True)
    places = np.flatnonzero(batch.is_action[1])
    batch.tokens[1, places[1]] = batch.tokens[1, places[0]] + 1
    cut = np.array([False, True, False, True, False, False])
    return batch._replace(truncated=cut, terminated=~cut)


def states_of(model, batch, row):
    """The networks' outputs at each state of a dialogue in which the learner speaks."""
    policy = model.policy
    prefixes = [batch.tokens[row, :p] for p in np.flatnonzero(batch.is_action[row])]
    if batch.truncated[row]:
        whole = batch.tokens[row, : batch.lengths[row]]
        prefixes.append(np.append(whole, TAGS["system"]))
    for prefix in prefixes:
        tokens = torch.from_numpy(prefix.astype(np.int64))[None]
        hidden = value_hidden = slow = policy.backbone(tokens)[0, -1]
        if policy.value_backbone is not None:
            value_hidden = policy.value_backbone(tokens)[0, -1]
            slow = policy.target_backbone(tokens)[0, -1]
        allowed = np.ones(policy.action_space.n, bool)
        if policy.masker is not None:
            automaton = policy.observation_space.automaton
            said = prefix[np.flatnonzero(prefix == TAGS["system"])[-1] + 1 :]
            allowed = automaton.allowed[automaton.walk(said)].copy()
        yield {
            "allowed": allowed,
            "logits": policy.policy_head(hidden),
            "q": [head(value_hidden) for head in policy.q_heads],
            "targets": [head(slow).tolist() for head in policy.target_q_heads],
            "v": policy.value_head(value_hidden)[0],
        }


def slow_losses(kind, model, batch):
    """The means of all losses, decision by decision; what is no prediction is a plain number."""
    totals = dict.fromkeys(("q_loss", "v_loss", "cql_loss", "policy_loss"), 0.0)
    count = 0
    for row in range(len(batch.tokens)):
        states = list(states_of(model, batch, row))
        places = np.flatnonzero(batch.is_action[row])
        said = batch.tokens[row, places].tolist()
        rewards = batch.reward[row, places].tolist()
        for state, action in zip(states, said, strict=False):
            state["allowed"][action] = True
        for i, (action, reward) in enumerate(zip(said, rewards, strict=True)):
            state = states[i]
            following = states[i + 1] if i + 1 < len(states) else None
            choices = np.flatnonzero(state["allowed"])
            log_prob = state["logits"][action] - state["logits"][choices].logsumexp(0)
            worth = min(target[action] for target in state["targets"])
            returns = sum(r * model.gamma**k for k, r in enumerate(rewards[i:]))
            target = reward
            if kind == "psi":
                target = reward / model.reward_scale + log_prob.item()
            if following is not None:
                target += model.gamma * next_value(kind, following)
            if kind == "monte-carlo":
                target = worth_of_v = returns
            else:
                worth_of_v = worth
            for q in state["q"]:
                error = target - q[action]
                if kind == "psi":
                    small = error.abs() <= 1
                    totals["q_loss"] += error**2 / 2 if small else error.abs() - 0.5
                else:
                    totals["q_loss"] += error**2
                warm = q[choices] / model.cql_temperature
                totals["cql_loss"] += warm.logsumexp(0) - q[action] / model.cql_temperature
            gap = worth_of_v - state["v"]
            totals["v_loss"] += (model.expectile if gap > 0 else 1 - model.expectile) * gap**2
            weight = 1.0
            if model.awac_beta:
                weight = min(
                    math.exp(model.awac_beta * (worth - state["v"].item())), model.awac_clip
                )
            totals["policy_loss"] -= weight * log_prob
            count += 1
    means = {name: total / count for name, total in totals.items()}
    weights = {
        "q_loss": model.q_weight,
        "v_loss": model.v_weight,
        "cql_loss": model.cql_weight,
        "policy_loss": model.policy_weight,
    }
    return {**means, "loss": sum(weights[name] * means[name] for name in means)}


def next_value(kind, state):
    both = np.minimum(*map(np.array, state["targets"]))[state["allowed"]]
    if kind == "cql":
        return both.max()
    if kind == "psi":
        return np.log(np.exp(both).sum())
    return state["v"].item()


@pytest.mark.parametrize("policy", [{}, OWN_TRUNK], ids=["one-trunk", "own-trunk-no-mask"])
@pytest.mark.parametrize("kind", KINDS)
def test_losses_and_gradients_are_those_of_a_slow_version(kind, policy, games):
    model = randomised(made(kind, games, policy, gamma=0.9))
    batch = awkward_batch(games, 0.9)
    expected = slow_losses(kind, model, batch)
    expected["loss"].backward()
    grads = {n: p.grad.clone() for n, p in model.policy.named_parameters() if p.grad is not None}
    model.policy.zero_grad()
    assert len(list(model.batches(model.read(batch), 130))) > 2
    found = mean_losses(model, batch, 130)
    assert {*expected, "q", "v"} == found.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value.item(), rel=1e-4), name
    for name, weight in model.policy.named_parameters():
        if "target_" in name:
            assert weight.grad is None
        elif name in grads:
            torch.testing.assert_close(weight.grad, grads[name], atol=2e-5, rtol=1e-3)
        else:
            assert weight.grad is None or not weight.grad.any()
    learned = {name.split(".")[0] for name, grad in grads.items() if grad.any()}
    assert {"backbone", "q_heads", "value_head"} <= learned


@pytest.mark.parametrize("policy", [{}, {"share_features_extractor": False}])
def test_targets_follow_by_polyak_averaging(policy, games):
    model = made("ilql", games, policy, tau=0.25, learning_rate=0.01)
    slow = [model.policy.target_q_heads, model.policy.target_backbone]
    fast = [model.policy.q_heads, model.policy.value_backbone]
    pairs = [(s, f) for s, f in zip(slow, fast, strict=True) if s is not None]
    assert len(pairs) == 1 + bool(policy)
    before = [[p.clone() for p in s.parameters()] for s, _ in pairs]
    start = [[p.clone() for p in f.parameters()] for _, f in pairs]
    model.learn(1)
    for (s, f), old, was in zip(pairs, before, start, strict=True):
        for target, source, then, first in zip(
            s.parameters(), f.parameters(), old, was, strict=True
        ):
            torch.testing.assert_close(target, 0.75 * then + 0.25 * source, atol=1e-7, rtol=1e-6)
            assert torch.equal(then, first), "targets begin as what they copy"
    assert any(not torch.equal(p, q) for p, q in zip(fast[0].parameters(), start[0], strict=True))


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8), st.floats(0.05, 0.95))
def test_the_expectile_balances_what_is_above_and_below(values, tau):
    """Its defining equation: tau E[(x - m)+] = (1 - tau) E[(m - x)+] at the minimum."""
    x = torch.tensor(values, dtype=torch.float64)
    low, high = float(x.min()), float(x.max())
    for _ in range(60):
        middle = torch.tensor((low + high) / 2, dtype=torch.float64, requires_grad=True)
        expectile_loss(x - middle, tau).sum().backward()
        low, high = (middle.item(), high) if middle.grad < 0 else (low, middle.item())
    above, below = (x - low).clamp(min=0).sum(), (low - x).clamp(min=0).sum()
    assert tau * above.item() == pytest.approx((1 - tau) * below.item(), abs=1e-6)


def test_expectile_and_regulariser_in_numbers():
    errors = expectile_loss(torch.tensor([2.0, -2.0]), 0.9)
    assert errors.tolist() == pytest.approx([3.6, 0.4])
    q = torch.tensor([[0.0, math.log(3.0), 5.0]])
    assert conservative_loss(q[None], torch.tensor([1]))[0].item() == pytest.approx(
        math.log(4 + math.exp(5)) - math.log(3)
    )
    allowed = torch.tensor([[True, True, False]])
    assert conservative_loss(q[None], torch.tensor([1]), allowed)[0].item() == pytest.approx(
        math.log(4 / 3)
    )
    half = conservative_loss(q[None], torch.tensor([1]), allowed, temperature=0.5)
    assert half.item() == pytest.approx(math.log(10 / 9))


def test_the_learners_tag_follows_what_a_limit_cut_off(games):
    tokens = games.tokens()
    batch = tokens.batch(np.arange(3), trim=True)
    batch = batch._replace(truncated=np.array([True, True, False]))
    own = batch.is_action.copy()  # the second ended in the learner's own words
    own[1, batch.lengths[1] - 1] = True
    batch = batch._replace(is_action=own)
    ends = [int(n) for n in batch.lengths]

    def last_places(window):
        sequences = decisions_of(batch, torch.device("cpu"), TAGS["system"], window)
        last = sequences.first[1:] - 1
        rows = [sequences.tokens[i, sequences.places[n]].item() for i, n in enumerate(last)]
        return sequences.places[last].tolist()[:2], rows[0]

    assert last_places(tokens.window) == ([ends[0], ends[1] - 1], TAGS["system"])
    assert last_places(ends[0]) == ([ends[0] - 1, ends[1] - 1], int(batch.tokens[0, ends[0] - 1]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_in_two_parts_is_the_same_as_one(kind, games, tmp_path):
    policy = {"share_features_extractor": False} if kind == "ilql" else {}
    half, other = assert_two_parts_are_one_run(
        lambda: made(kind, games, policy, gamma=0.9), games, tmp_path
    )
    names = [name for name, _ in other.policy.named_parameters()]
    assert any(name.startswith("target_q_heads") for name in names)
    moved = zip(other.policy.parameters(), half.policy.parameters(), strict=True)
    assert sum(not torch.equal(a, b) for a, b in moved) > len(names) // 2


def test_the_way_of_speaking_is_saved(games, tmp_path):
    model = made("ilql", games, {"decoding": {"beta": 2.0}})
    assert model.policy.decoding.beta == 2
    model.save(tmp_path / "given")
    model.policy.decoding.top_k = 3
    model.save(tmp_path / "changed")
    assert model.policy_kwargs["decoding"] == {"beta": 2.0}
    for name, top_k in {"given": None, "changed": 3}.items():
        loaded = agents.load(tmp_path / f"{name}.zip")
        assert (loaded.policy.decoding.beta, loaded.policy.decoding.top_k) == (2, top_k)
    assert made("psi").policy.decoding.policy_weight == 0
    assert made("ilql").policy.decoding.beta > 0


def test_its_hyperparameters_are_those_that_its_page_says_mattered():
    weight = read_hyperparameters("ilql", ID)["cql_weight"]
    page = (Path(__file__).parents[3] / "docs" / "offline.md").read_text("utf-8")
    assert f"the file above\nhas {weight}." in page
    assert ILQL("GPTPolicy", dialgym.sb3_vec_env(ID, 1)).cql_weight < weight  # the paper's


def test_cloning_alone_is_the_same_in_all_of_them(games):
    """The cloning loss of every algorithm is BC's, on the same batch and weights."""
    clone = learner(BC, games)
    for kind in KINDS:
        model = made(kind, games)
        agents.start_from(model.policy, clone)
        batch = games.tokens().batch(np.arange(8), trim=True)
        losses = []
        for one in (clone, model):
            found = mean_losses(one, batch)
            losses.append(found.get("policy_loss", found["loss"]))
        if kind != "awac":
            assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_speed_is_measured_beside_cloning(monkeypatch):
    from benchmarks.training import offline

    small = {"GAMES": 40, "BATCH": 8, "SIZES": SMALL, "DIALOGUES": 1, "ENV": ID}
    for name, value in small.items():
        monkeypatch.setattr(offline, name, value)
    clone, *others, utterance = offline.figures(1)
    assert all(figure.value > 0 for figure in (clone, *others, utterance))
    assert [figure.reference for figure in others] == [clone, clone]
    assert [figure.bar is None for figure in (clone, *others, utterance)] == [
        True, False, True, False,
    ]  # fmt: skip
    steps = offline.Steps(BC, dialgym.collect(ID, "random-mixture", 8, seed=0), SMALL)
    steps()
    assert (steps.count, steps.tokens) == (1, len(steps.model.data.tokens))
