"""Meanings of the entries of slot filling's observations, checked against real ones."""

import pickle

import numpy as np
import pytest

from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.domain.ontology import NAME
from dialgym.tasks.slot_filling.structure import belief_structure
from dialgym.tasks.slot_filling.summary_acts import act_names
from dialgym.views.act_env import ActEnv
from dialgym.views.sb3 import sb3_vec_env
from tests.support.slot_talk import DATABASE, Ear

DOMAINS = ("Restaurants", "CityRestaurants", "Laptops", "Transport")


@pytest.fixture(scope="module", params=DOMAINS)
def seen(request):
    """The task, and observations of handcrafted dialogues with noise: (n, B)."""
    task = SlotFilling(domain=request.param, env=6)
    env = ActEnv(task)
    policy = env.acts.policy_named("handcrafted")
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(6):
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            rows.append(observation)
            action = policy.act(task, env.dialogue.state, rng)
            observation, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
        rows.append(observation)
    return task, np.stack(rows)


def structure_of(task):
    return task.acts["system"].structure


def test_every_entry_is_in_one_part(seen):
    task, rows = seen
    structure = structure_of(task)
    parts = [(slot.start, slot.stop) for slot in structure.slots] + [*structure.blocks.values()]
    covered = [entry for start, stop in sorted(parts) for entry in range(start, stop)]
    assert covered == list(range(structure.size)) == list(range(rows.shape[1]))


def test_slots_and_methods_are_distributions(seen):
    task, rows = seen
    structure = structure_of(task)
    for slot in structure.slots:
        block = rows[:, slot.start : slot.stop]
        assert np.allclose(block.sum(1), 1, atol=1e-5)
        assert slot.values == slot.stop - slot.start - 2
        assert rows[0, slot.none] == 1.0  # nothing has been said yet
    start, stop = structure.blocks["methods"]
    assert np.allclose(rows[:, start:stop].sum(1), 1, atol=1e-5)


def test_flags_are_0_or_1(seen):
    task, rows = seen
    for name in ("offer", "counts"):
        start, stop = structure_of(task).blocks[name]
        assert np.isin(rows[:, start:stop], (0, 1)).all()


def test_acts_are_those_of_the_slot(seen):
    task, _ = seen
    acts = task.acts["system"]
    structure = acts.structure
    named = dict(structure.general)
    for slot in structure.asked:
        assert list(slot.acts) == ["request", "confirm", "select"]
        named |= {f"{kind}_{slot.name}": act for kind, act in slot.acts.items()}
    assert [name for name, _ in sorted(named.items(), key=lambda pair: pair[1])] == list(acts.names)
    assert structure.n_acts == len(acts.names)
    assert {s.name for s in structure.asked} == set(task.domain.ontology.system_requestable)


def test_entropy_is_from_0_to_1(seen):
    task, _ = seen
    slots = {slot.name: slot for slot in structure_of(task).slots}
    assert all(0 <= slot.entropy <= 1 for slot in slots.values())
    assert slots[NAME].entropy == pytest.approx(1, abs=0.05)  # nearly each row has its own


def test_entries_are_those_of_what_was_said():
    ear = Ear().hear("hello()", ('inform(food="greek")', 0.75), ("request(phone)", 0.2))
    structure = _structure(ear)
    vector = ear.summariser.vector(ear.belief, ear.summary)
    food = next(slot for slot in structure.slots if slot.name == "food")
    assert vector[food.start + 1] == np.float32(0.75)  # thai, greek, cafe
    assert vector[food.none] == np.float32(0.25)
    assert vector[structure.requests["phone"]] == np.float32(0.2)
    ear.hear("request(food)", 'inform(food="dontcare")')
    vector = ear.summariser.vector(ear.belief, ear.summary)
    assert vector[food.dontcare] == 1.0
    assert food.requested == structure.requests["food"]


def test_entropy_of_a_column_in_units_of_the_greatest():
    slots = {slot.name: slot for slot in _structure(Ear()).slots}
    p = np.array([0.4, 0.4, 0.2])  # thai, greek, cafe
    assert slots["food"].entropy == pytest.approx(-(p * np.log(p)).sum() / np.log(3))
    assert slots["price"].entropy == 0  # each row has the same
    assert slots["price"].acts == {}


def _structure(ear):
    return belief_structure(ear.summariser, act_names(DATABASE.ontology))


def test_other_acts_have_none():
    assert SlotFilling().acts["user"].structure is None


@pytest.mark.parametrize("workers", [0, 1])
def test_a_pool_offers_it(workers):
    env = sb3_vec_env("dialgym/SlotFilling-act-v0", 2, workers=workers)
    try:
        acts = env.get_attr("acts")[0]
        structure = acts.structure
        assert (structure.size,) == env.observation_space.shape
        assert pickle.loads(pickle.dumps(structure)) == structure
    finally:
        env.close()
