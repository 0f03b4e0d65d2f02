"""FeudalGain: the divergence, what it rewards, and that questions are learned from it alone."""

import numpy as np
import pytest
import torch

import dialgym
from agents.acts.feudal.gain import FeudalGain, information_gain, js_divergence
from tests.support.close import assert_close

CR = "dialgym/SlotFilling-act-v0"


@pytest.fixture(scope="module")
def model():
    env = dialgym.sb3_vec_env(CR, 2, seed=0)
    return FeudalGain("MlpPolicy", env, seed=0, learning_starts=20, device="cpu").learn(150)


def slow_divergence(p, q):
    def kl(one, other):
        return sum(a * np.log2(a / b) for a, b in zip(one, other) if a > 0)

    middle = [(a + b) / 2 for a, b in zip(p, q)]
    return (kl(p, middle) + kl(q, middle)) / 2


def test_divergence_is_that_of_a_slow_reference():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.full(6, 0.3), (2, 30))
    p[0], q[0] = np.eye(6)[0], np.eye(6)[1]
    q[1] = p[1]
    found = js_divergence(torch.from_numpy(p), torch.from_numpy(q))
    assert_close(found, [slow_divergence(*pair) for pair in zip(p, q)])
    assert found[0] == pytest.approx(1.0)
    assert found[1] == pytest.approx(0.0, abs=1e-12)


def test_gain_is_that_of_the_slot_in_question(model):
    structure = model.structure
    before = torch.zeros(1, structure.size)
    before[0, [slot.none for slot in structure.slots]] = 1.0
    after, told = before.clone(), structure.asked[1]
    after[0, told.none], after[0, told.start] = 0.0, 1.0
    gains = [
        float(information_gain(structure, before, after, torch.tensor([number])))
        for number in range(len(structure.asked))
    ]
    assert gains == [pytest.approx(float(number == 1), abs=1e-6) for number in range(len(gains))]


def test_targets_are_those_of_a_slow_reference(model):
    batch = model.replay_buffer.sample(60)
    targets, tree = model.targets(batch), model.q_net.q_net.hierarchy
    with torch.no_grad():
        model.q_net.eval()
        judge = model.q_net.parts(batch.next_observations)
        ahead = model.q_net_target.parts(batch.next_observations)
    slots = [act for slot in model.structure.asked for act in slot.acts.values()]
    kinds = set()
    for i in range(60):
        free = np.flatnonzero(batch.next_masks[i].numpy()).tolist()
        best = max({int(tree.branches[a]) for a in free}, key=lambda kind: judge.master[i, kind])
        master = batch.rewards[i] + batch.discounts[i] * ahead.master[i, best]
        act = max((a for a in free if a in slots), key=lambda a: judge.acts[i, a])
        wanted = master
        if int(batch.actions[i]) in slots:
            slot = next(
                s for s in model.structure.asked if int(batch.actions[i]) in s.acts.values()
            )
            pair = (batch.observations[i], batch.next_observations[i])
            p, q = (row[slot.start : slot.stop].tolist() for row in pair)
            gained = 2.0 * (slow_divergence(p, q) > 0.2)
            kinds.add(gained)
            wanted = batch.rewards[i] + gained + batch.discounts[i] * ahead.acts[i, act]
        assert_close(targets[:, i], torch.stack((master, wanted)))
    assert kinds == {0.0, 2.0}


def test_it_explores_by_noisy_dueling_networks(model):
    assert model.policy.q_net.q_net.slot.uncertainty == "noisy"
    assert model.policy.q_net.q_net.slot.values is not None
    assert model.exploration_rate == 0
    obs = np.repeat(model.env.reset()[:1], 50, 0)
    assert len(set(model.predict(obs)[0].tolist())) > 1
    assert len(set(model.predict(obs, deterministic=True)[0].tolist())) == 1
