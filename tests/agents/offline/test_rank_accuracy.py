"""Measures of offline learning, on cases small enough to do by hand."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import dialgym
from agents import BC, ILQL, QSFT, OfflineArCHer
from agents.offline import rank_accuracy as metrics
from agents.offline.rank_accuracy import LoggedDecisions, Rated, divergence, entropy
from agents.updater import Compute

ID = "dialgym/Wordle-20-v0"
SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}


@pytest.fixture(scope="module")
def games():
    return dialgym.collect(ID, "adversarial", 12, seed=0)


def made(**policy):
    env = dialgym.sb3_vec_env(ID, 1)
    model = ILQL("GPTPolicy", env, policy_kwargs={**SMALL, **policy}, seed=0)
    torch.manual_seed(1)
    for module in (model.policy.q_heads, model.policy.target_q_heads, model.policy.value_head):
        for weight in module.parameters():
            nn.init.normal_(weight, std=0.4)
    return model


def test_divergence_and_entropy_in_numbers():
    logits = torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]).log().clamp(min=-1e8)
    others = torch.tensor([[0.25, 0.75, 0.0], [0.25, 0.25, 0.5]]).log().clamp(min=-1e8)
    expected = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)
    assert divergence(logits, others).tolist() == pytest.approx([expected, 0], abs=1e-6)
    assert entropy(logits).tolist() == pytest.approx([math.log(2), 1.5 * math.log(2)], abs=1e-6)


@pytest.mark.parametrize(
    "own",
    [
        pytest.param(False, id="one-trunk"),
        pytest.param(True, id="own-trunk", marks=pytest.mark.slow),
    ],
)
def test_decisions_are_what_the_policy_says_of_each_prefix(own, games):
    model = made(share_features_extractor=not own, decoding={"beta": 2.0, "advantage_clip": 0.5})
    model.updater.compute = Compute(micro_batch_tokens=150)
    some = games.select(np.arange(9))
    found = metrics.decisions(model, some)
    batch = some.tokens().batch(np.arange(9))
    n = 0
    for row in range(9):
        number = -1
        for place in np.flatnonzero(batch.is_action[row]):
            number += not batch.is_action[row, place - 1]
            seen = np.where(np.arange(batch.tokens.shape[1]) < place, batch.tokens[row], 0)
            obs, said = torch.tensor(seen[None]), int(batch.tokens[row, place])
            with torch.no_grad():
                spoken = model.policy.get_distribution(obs).distribution.logits
                model.policy.decoding.beta = 0.0
                cloned = model.policy.get_distribution(obs).distribution.logits
                model.policy.decoding.beta = 2.0
                _, hidden, _ = model.policy.hidden_states(
                    obs[:, :place].long(), torch.tensor([place - 1])
                )
                heads = model.policy.q_heads if own else model.policy.target_q_heads
                q = min(head(hidden)[0, said].item() for head in heads)
                v = model.policy.predict_values(obs).item()
            assert (found.dialogue[n], found.utterance[n], found.token[n]) == (row, number, said)
            assert found.reward[n] == batch.reward[row, place]
            assert (found.q[n], found.v[n]) == pytest.approx((q, v), abs=1e-4)
            assert found.advantage[n] == pytest.approx(q - v, abs=1e-4)
            chances, base = spoken[0].exp(), cloned[0].exp()
            kept = chances > 0
            kl = (chances[kept] * (chances[kept] / base[kept]).log()).sum().item()
            assert found.kl[n] == pytest.approx(kl, abs=1e-4)
            surprise = -(chances[kept] * chances[kept].log()).sum().item()
            assert found.entropy[n] == pytest.approx(surprise, abs=1e-4)
            n += 1
    assert n == len(found.token)
    assert found.kl.max() > 0.01
    means = metrics.summary(model, some)
    assert means["token_reward"] == pytest.approx(some.returns.sum() / n)
    assert means["kl"] == pytest.approx(found.kl.mean())


def test_speech_as_cloned_has_no_divergence(games):
    model = made(decoding={"beta": 0.0})
    assert np.abs(metrics.decisions(model, games).kl).max() < 1e-5


def known(monkeypatch, q_of):
    """Make Q of the k-th token of an utterance `q_of(row, utterance, k)`."""

    def decisions(model, dataset):
        batch = dataset.tokens().batch(np.arange(len(dataset)))
        rows, numbers, tokens, q = [], [], [], []
        for row in range(len(dataset)):
            number, k = -1, 0
            for place in np.flatnonzero(batch.is_action[row]):
                begins = not batch.is_action[row, place - 1]
                number, k = number + begins, 0 if begins else k + 1
                rows.append(row)
                numbers.append(number)
                tokens.append(batch.tokens[row, place])
                q.append(q_of(dataset[row]["kind"], number, k))
        zeros = np.zeros(len(q), np.float32)
        columns = [np.array(column) for column in (rows, numbers, tokens)]
        return LoggedDecisions(*columns, zeros, np.array(q, np.float32), zeros, zeros, zeros)

    monkeypatch.setattr(metrics, "decisions", decisions)


def test_ranks_of_the_expert_and_the_repeat(games, monkeypatch):
    pairs = games.pairs("repeat")
    assert len(pairs) > 0
    assert set(pairs[:, 2]) == {2}
    said = [
        [[t["text"] for t in games[row]["turns"] if t["said"]] for row in pair[:2]]
        for pair in pairs.tolist()
    ]
    assert all(expert[:2] == branch[:2] and expert[2] != branch[2] for expert, branch in said)
    known(monkeypatch, lambda kind, number, k: float(kind == "expert" and number == 2))
    assert metrics.rank_accuracy(None, games) == (1.0, len(pairs))
    known(monkeypatch, lambda kind, number, k: float(kind == "repeat" and number == 2))
    assert metrics.rank_accuracy(None, games) == (0.0, len(pairs))
    known(monkeypatch, lambda kind, number, k: float(number != 2))
    assert metrics.rank_accuracy(None, games) == (0.0, len(pairs))  # a draw is not right
    late = [next(k for k in range(5) if e[2][k] != b[2][k]) for e, b in said]
    known(monkeypatch, lambda kind, number, k: float(kind == "expert" and k == 0))
    assert metrics.rank_accuracy(None, games).accuracy == np.mean([k == 0 for k in late])
    assert metrics.rank_accuracy(None, games, by="utterance").accuracy == 1
    none = metrics.rank_accuracy(None, games.filter(games["kind"] == "expert"))
    assert none.pairs == 0
    assert math.isnan(none.accuracy)


def test_utterances_of_greatest_and_least_advantage(games):
    model = made()
    best, worst = metrics.extreme_utterances(model, games, count=4)
    found = metrics.decisions(model, games)
    sums, texts = {}, {}
    for row, number, a in zip(found.dialogue, found.utterance, found.advantage, strict=True):
        sums[row, number] = sums.get((row, number), 0.0) + float(a)
    for row in range(len(games)):
        own = [turn["text"] for turn in games[row]["turns"] if turn["said"]]
        texts |= {(row, number): text for number, text in enumerate(own)}
    assert sums.keys() == texts.keys()
    ordered = sorted(sums.values(), reverse=True)
    assert [one.advantage for one in best] == pytest.approx(ordered[:4], abs=1e-5)
    assert [one.advantage for one in worst] == pytest.approx(ordered[::-1][:4], abs=1e-5)
    for one in best + worst:
        assert isinstance(one, Rated)
        assert one.text == texts[one.dialogue, one.utterance]
        assert sums[one.dialogue, one.utterance] == pytest.approx(one.advantage, abs=1e-5)
    assert len(metrics.extreme_utterances(model, games, 10**6)[0]) == len(texts)


def test_mistakes_are_one_clear_error(games):
    clone = BC("GPTPolicy", dialgym.sb3_vec_env(ID, 1), policy_kwargs=SMALL)
    env = dialgym.sb3_vec_env(ID, 1)
    others = [cls("GPTPolicy", env, policy_kwargs=SMALL) for cls in (OfflineArCHer, QSFT)]
    for model in (clone, *others):
        with pytest.raises(ValueError, match=r"expected a model with Q and V of single tokens"):
            metrics.summary(model, games)
    with pytest.raises(ValueError, match="by of rank_accuracy must be one of"):
        metrics.rank_accuracy(made(), games, by="last")
