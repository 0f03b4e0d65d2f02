"""ILQL and its kin against slow versions that read every prefix by itself."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import agents
import dialgym
from agents import BC, CQL, ILQL, PsiLearning, SingleStepRL
from agents.buffers.stored import decisions_of, heard_places
from agents.models.action_outputs import gather_and_logsumexp
from agents.offline.ilql import Estimates
from agents.offline.losses import ValueLosses, margin_loss
from agents.training.hyperparameters import read_hyperparameters
from dialgym.language.tokenizers import TAGS
from tests.support.by_day import by_day
from tests.support.toy_dialogues import mean_losses, randomised
from tests.support.word_games import ID, SMALL, assert_two_parts_are_one_run, learner

DEEP = {"class": "agents.models.heads.ResidualHead", "hidden": 24}
KINDS = {
    "ilql": (ILQL, {"expectile": 0.8, "cql_weight": 0.3, "cql_temperature": 2.0}),
    "awac": (ILQL, {"awac_beta": 2.0, "awac_clip": 1.5, "policy_weight": 0.7, "v_weight": 0.4}),
    "mixed": (ILQL, {"expectile": 0.8, "losses": {"mc_weight": 0.4}}),
    "single-step": (SingleStepRL, {"q_weight": 0.5}),
    "monte-carlo": (SingleStepRL, {"returns": "monte-carlo"}),
    "cql": (CQL, {"cql_weight": 0.6}),
    "cal-ql": (CQL, {"cql_weight": 0.6, "calibrated": True}),
    "psi": (PsiLearning, {"reward_scale": 0.3}),
    "margin": (ILQL, {"losses": {"dm_weight": 0.4, "dm_margin": 0.3}}),
    "sign": (ILQL, {"awac_beta": 0.8, "losses": {"awac_weights": "sign"}}),
    "heard": (ILQL, {"policy_weight": 0.7, "losses": {"transition_weight": 0.25}}),
    "detached": (ILQL, {"cql_weight": 0.3, "losses": {"detach": ["q", "v"]}}),
    "probe": (ILQL, {"losses": {"detach": "policy", "transition_weight": 0.5}}),
    "bounded": (CQL, {"awac_beta": 1.0}, {"value_min": -0.4, "value_max": 0.2}),
    "deep": (ILQL, {}, {"q_head": DEEP, "value_head": DEEP["class"]}),
}
OWN_TRUNK = {"share_features_extractor": False, "mask": False}


def made(kind, games=None, policy=None, **settings):
    algorithm, own, *more = KINDS[kind]
    kwargs = {**(more[0] if more else {}), **(policy or {})}
    return learner(algorithm, games, kwargs, **{**own, **settings})


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
        of_head = {
            name: states.detach() if name in model.losses.detach else states
            for name, states in (("policy", hidden), ("q", value_hidden), ("v", value_hidden))
        }
        yield {
            "allowed": allowed,
            "logits": policy.policy_head(of_head["policy"]),
            "q": [head(of_head["q"]) for head in policy.q_heads],
            "targets": [head(slow).tolist() for head in policy.target_q_heads],
            "v": policy.value_head(of_head["v"])[0],
        }


def slow_heard_loss(model, batch, row):
    """-log pi of all that the other party says in a dialogue, token by token."""
    total, tokens = 0.0, batch.tokens[row]
    for place in range(1, batch.lengths[row]):
        if not batch.is_action[row, place] and tokens[place] not in TAGS.values():
            seen = torch.from_numpy(tokens[:place].astype(np.int64))[None]
            hidden = model.policy.backbone(seen)[0, -1]
            if "policy" in model.losses.detach:
                hidden = hidden.detach()
            total -= model.policy.policy_head(hidden).log_softmax(0)[tokens[place]]
    return total


def slow_losses(kind, model, batch):
    """The means of all losses, decision by decision; what is no prediction is a plain number."""
    losses, bounds = model.losses, model.policy.value_bounds
    names = ["q_loss", "v_loss", "cql_loss", "policy_loss"]
    names += ["dm_loss"] if losses.dm_weight else []
    names += ["transition_loss"] if losses.transition_weight else []
    totals = dict.fromkeys(names, 0.0)
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
            worth = bounded(worth, bounds)
            returns = sum(r * model.gamma**k for k, r in enumerate(rewards[i:]))
            target = reward
            if kind == "psi":
                target = reward / model.reward_scale + log_prob.item()
            if following is not None:
                target += model.gamma * next_value(kind, following, bounds)
            target += losses.mc_weight * (returns - target)
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
                if kind == "cal-ql":
                    warm = torch.where(q[choices] > returns, q[choices], returns)
                totals["cql_loss"] += warm.logsumexp(0) - q[action] / model.cql_temperature
                if losses.dm_weight:
                    for choice in choices:
                        excess = q[choice] - q[action] + losses.dm_margin
                        totals["dm_loss"] += excess**2 if excess > 0 else 0.0
            gap = worth_of_v - state["v"]
            totals["v_loss"] += (model.expectile if gap > 0 else 1 - model.expectile) * gap**2
            weight = 1.0
            if losses.awac_weights == "sign":
                weight = model.awac_beta if worth > state["v"] else 1 - model.awac_beta
            elif model.awac_beta:
                weight = min(
                    math.exp(model.awac_beta * (worth - state["v"].item())), model.awac_clip
                )
            totals["policy_loss"] -= weight * log_prob
            count += 1
        if losses.transition_weight:
            totals["transition_loss"] += slow_heard_loss(model, batch, row)
    means = {name: total / count for name, total in totals.items()}
    weights = {
        "q_loss": model.q_weight,
        "v_loss": model.v_weight,
        "cql_loss": model.cql_weight,
        "policy_loss": model.policy_weight,
        "dm_loss": losses.dm_weight,
        "transition_loss": model.policy_weight * losses.transition_weight,
    }
    return {**means, "loss": sum(weights[name] * means[name] for name in means)}


def bounded(worth, bounds):
    low = -math.inf if bounds.value_min is None else bounds.value_min
    high = math.inf if bounds.value_max is None else bounds.value_max
    return min(max(worth, low), high)


def next_value(kind, state, bounds):
    both = np.minimum(*map(np.array, state["targets"]))[state["allowed"]]
    both = np.array([bounded(worth, bounds) for worth in both])
    if kind in ("cql", "cal-ql", "bounded"):
        return both.max()
    if kind == "psi":
        return np.log(np.exp(both).sum())
    return state["v"].item()


@pytest.mark.parametrize(
    ("kind", "policy"),
    [
        pytest.param(
            *(kind, {}),
            id=f"{kind}-one-trunk",
            marks=[pytest.mark.slow] * (kind in ("ilql", "probe", "cql", "deep", "monte-carlo")),
        )
        for kind in KINDS
    ]
    + [
        pytest.param(
            *(kind, OWN_TRUNK),
            id=f"{kind}-own-trunk-no-mask",
            marks=[pytest.mark.slow] * (kind not in ("ilql", "probe")),
        )
        for kind in KINDS
        if kind != "detached"  # a trunk of their own would learn nothing, and is refused
    ],
)
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


def test_targets_are_copied_at_intervals(games):
    model = made("ilql", games, tau=1.0, target_update_interval=3, learning_rate=0.01)
    slow, fast = model.policy.target_q_heads, model.policy.q_heads
    before = [weight.clone() for weight in slow.parameters()]

    def same(weights, others):
        return all(torch.equal(a, b) for a, b in zip(weights, others, strict=True))

    model.learn(2)
    assert same(slow.parameters(), before)
    assert not same(slow.parameters(), fast.parameters())
    model.learn(1, reset_num_timesteps=False)
    assert same(slow.parameters(), fast.parameters())


def test_the_learners_tag_follows_what_a_limit_cut_off(games):
    tokens = games.tokens()
    batch = tokens.batch(np.arange(3), trim=True)
    cut = np.array([True, True, False])
    batch = batch._replace(truncated=cut, terminated=~cut)
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


@pytest.mark.parametrize("kind", by_day(KINDS, "ilql"))
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


def numpy_losses(model, batch, log_prob, q, v, target_q):
    """The losses (n,) of all decisions in float64, one by one."""
    rows = {name: np.zeros(len(v)) for name in ("q_loss", "v_loss", "cql_loss", "dm_loss")}
    rows["policy_loss"] = np.zeros(len(v))
    for i, action in enumerate(batch.actions.tolist()):
        if not batch.is_action[i]:
            continue
        target = float(batch.rewards[i]) + (model.gamma * v[i + 1] if batch.not_done[i] else 0.0)
        choices = np.flatnonzero(batch.allowed[i].numpy())
        for values in q[:, i]:
            rows["q_loss"][i] += (target - values[action]) ** 2
            warm = values[choices] / model.cql_temperature
            rows["cql_loss"][i] += np.log(np.exp(warm).sum()) - values[action] / 2.0
            excess = np.maximum(0, values[choices] - values[action] + model.losses.dm_margin)
            rows["dm_loss"][i] += (excess**2).sum()
        gap = target_q[i, action] - v[i]
        rows["v_loss"][i] = (model.expectile if gap > 0 else 1 - model.expectile) * gap**2
        weight = np.exp(model.awac_beta * gap)
        if model.losses.awac_weights == "sign":
            weight = model.awac_beta if gap > 0 else 1 - model.awac_beta
        rows["policy_loss"][i] = -min(weight, model.awac_clip) * log_prob[i]
    return rows


@pytest.mark.parametrize("weights", ["exp", "sign"])
def test_each_loss_is_that_of_numpy_in_double_precision(weights, games):
    losses = ValueLosses(dm_weight=0.4, dm_margin=0.3, awac_weights=weights)
    settings = {"awac_beta": 0.7, "awac_clip": 1.3, "cql_temperature": 2.0, "losses": losses}
    model = made("ilql", games, gamma=0.9, **settings)
    batch = model.batch(awkward_batch(games, 0.9))
    n, acts = len(batch.at), int(model.action_space.n)
    rng = np.random.default_rng(0)
    numbers = (-rng.random(n), rng.normal(size=(2, n, acts)), rng.normal(size=n),
               rng.normal(size=(n, acts)))  # fmt: skip
    log_prob, q, v, target_q = map(torch.from_numpy, numbers)
    said, total = gather_and_logsumexp(q, batch.actions, batch.allowed, model.cql_temperature)
    excess = margin_loss(q, batch.actions, batch.allowed, losses.dm_margin)
    target_said = target_q.gather(1, batch.actions[:, None])[:, 0]
    estimates = Estimates(log_prob, said, total, v, target_said, None, excess)
    loss, found = model.loss_of_estimates(batch, estimates)
    expected = numpy_losses(model, batch, *numbers)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name].numpy(), values, 1e-6, 1e-12, err_msg=name)
    weights_of = (model.q_weight, model.v_weight, model.cql_weight, 0.4, model.policy_weight)
    total = sum(w * values for w, values in zip(weights_of, expected.values(), strict=True))
    np.testing.assert_allclose(loss.numpy(), total, rtol=1e-6)


def test_the_loss_of_what_was_heard_is_that_of_numpy_in_double_precision(games):
    model = made("heard", games)
    torch.nn.init.normal_(model.policy.policy_head.weight)
    dialogues = awkward_batch(games, 1.0)
    batch = model.batch(dialogues)
    heard = heard_places(batch)
    hidden = torch.randn(len(heard), model.policy.backbone.width)
    found = model._heard_loss(batch, heard, hidden)
    logits = hidden.double().numpy() @ model.policy.policy_head.weight.detach().double().numpy().T
    log_probs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    expected, n = [], 0
    rows = {dialogues.tokens[i, :n].tobytes(): i for i, n in enumerate(dialogues.lengths)}
    for seen in batch.observations.numpy().astype(np.int32):  # in an order of their lengths
        [row] = [
            rows[seen[:n].tobytes()] for n in range(len(seen) + 1) if seen[:n].tobytes() in rows
        ]
        length = dialogues.lengths[row]
        said = dialogues.tokens[row, 1:length][~dialogues.is_action[row, 1:length]]
        said = said[~np.isin(said, list(TAGS.values()))]
        expected.append(-sum(log_probs[n + i, token] for i, token in enumerate(said)))
        n += len(said)
    assert n == len(heard)
    first = [int(torch.nonzero(batch.at // batch.observations.shape[1] == r)[0]) for r in range(6)]
    np.testing.assert_allclose(found[first].detach().numpy(), expected, rtol=1e-6)
    assert torch.count_nonzero(found) == 6


def test_settings_of_losses_are_kept(games, tmp_path):
    for kind in ("sign", "heard", "probe", "bounded", "deep"):
        model = made(kind, games).learn(1)
        model.save(tmp_path / kind)
        again = agents.load(tmp_path / f"{kind}.zip", env=model.env, dataset=games)
        assert (again.losses, again.policy.value_bounds) == (
            model.losses, model.policy.value_bounds,
        )  # fmt: skip
        assert type(again.policy.q_heads[0]) is type(model.policy.q_heads[0])
        for a, b in zip(again.policy.parameters(), model.policy.parameters(), strict=True):
            assert torch.equal(a, b)
    acts = dialgym.sb3_vec_env("dialgym/SlotFilling-act-v0", 1)
    with pytest.raises(ValueError, match="ILQL: transition_weight is for words; on act views"):
        ILQL("MlpPolicy", acts, losses={"transition_weight": 1.0})
    chooser = ILQL("MlpPolicy", acts, policy_kwargs={"value_max": -0.5, "q_head": DEEP})
    assert type(chooser.policy.q_heads[1]).__name__ == "ResidualHead"
    assert (chooser.policy.target_q(torch.zeros(2, 64)) == -0.5).all()


def test_its_hyperparameters_are_those_that_its_page_says_mattered():
    weight = read_hyperparameters("ilql", ID)["cql_weight"]
    page = (Path(__file__).parents[3] / "docs" / "offline.md").read_text("utf-8")
    assert f"the file above\nhas `{weight}`." in page
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
        if not model.awac_beta:
            assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_speed_is_measured_beside_cloning(monkeypatch):
    from benchmarks.training import offline

    small = {"GAMES": 40, "BATCH": 8, "SIZES": SMALL, "DIALOGUES": 1, "ENV": ID}
    for name, value in small.items():
        monkeypatch.setattr(offline, name, value)
    clone, *others, utterance, whole, pieces, fourth = offline.figures(1)
    assert all(f.value > 0 for f in (clone, *others, utterance, whole, pieces, fourth))
    assert [pieces.reference, fourth.reference] == [whole, whole]
    assert [figure.reference for figure in others] == [clone, clone, clone]
    assert [figure.bar is None for figure in (clone, *others, utterance)] == [
        True, False, True, True, False,
    ]  # fmt: skip
    steps = offline.Steps(BC, dialgym.collect(ID, "random-mixture", 8, seed=0), SMALL)
    steps()
    assert (steps.count, steps.tokens) == (1, len(steps.model.data.tokens))
