"""Features of beliefs that do not depend on the domain: against a slow reference, permuted."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from agents.acts.dip import DIP, JOINT, SLOT, same_features
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.domain.database import EntityDatabase
from dialgym.tasks.slot_filling.domain.ontology import Ontology
from dialgym.tasks.slot_filling.structure import belief_structure
from dialgym.tasks.slot_filling.summary_acts import act_names
from tests.support.close import assert_close
from tests.support.slot_domains import ASKED, REQUESTABLE
from tests.support.slot_talk import DATABASE, Ear


def structure_in(database):
    return belief_structure(Ear(database).summariser, act_names(database.ontology))


def beliefs(structure, count=50, seed=0):
    """(n, B): random beliefs whose blocks are distributions, many values not believed at all."""
    rng = np.random.default_rng(seed)
    rows = rng.random((count, structure.size)).astype(np.float32)
    for slot in structure.slots:
        block = rows[:, slot.start : slot.stop] ** 4
        block *= rng.random(block.shape) < 0.6
        block[:, slot.none - slot.start] += 1e-3
        rows[:, slot.start : slot.stop] = block / block.sum(1, keepdims=True)
    rows[0] = 0.0
    rows[0, [slot.none for slot in structure.slots]] = 1.0
    return torch.from_numpy(rows)


def slow_slot(row, slot):
    """`SLOT` of one belief, number by number."""
    values = [float(row[i]) for i in range(slot.start, slot.stop) if i != slot.none]
    none = float(row[slot.none])
    tops = sorted([*values, 0.0, 0.0], reverse=True)[:3]
    entropy = -sum(p * math.log(p) for p in [*values, none] if p > 0)
    margin = np.float32(tops[0]) - np.float32(tops[1])
    bins = [0.0] * 5
    bins[min(int(margin * np.float32(5)), 4)] = 1.0
    return [
        *tops,
        none,
        float(row[slot.dontcare]),
        entropy / math.log(slot.values + 2),
        sum(p > 0 for p in values) / (slot.values + 1),
        float(tops[0] >= none and tops[0] > 1 / (slot.values - 0.1)),
        0.0 if slot.requested is None else float(row[slot.requested]),
        1 / slot.values,
        math.log2(slot.values) / 8,
        slot.entropy,
        *bins,
    ]


def slow_general(row, structure):
    """The general features of one belief, number by number."""
    found = []
    for name, (start, stop) in structure.blocks.items():
        if name != "requested":
            found += [float(row[i]) for i in range(start, stop)]
    slots = [slow_slot(row, slot) for slot in structure.asked]
    tops = [slot[0] for slot in slots]
    columns = (tops, [s[3] for s in slots], [s[5] for s in slots], [s[0] - s[1] for s in slots])
    for column in columns:
        found += [sum(column) / len(column), min(column), max(column)]
    asks = [float(row[i]) for i in structure.requests.values()]
    accepted = sum(slot[7] for slot in slots)
    found += [math.prod(tops), accepted / len(slots), 1 / len(slots)]
    return [*found, max(asks), min(sum(asks) / 5, 1)]


@pytest.fixture(params=["toy", "CityRestaurants", "Laptops"])
def structure(request):
    if request.param == "toy":
        return structure_in(DATABASE)
    return SlotFilling(domain=request.param).acts["system"].structure


def test_features_are_those_of_a_slow_reference(structure):
    dip, rows = DIP(structure), beliefs(structure)
    general, slots = dip(rows)
    assert general.shape == (len(rows), dip.general_size)
    assert slots.shape == (len(rows), len(structure.asked), dip.slot_size)
    for row, features, per_slot in zip(rows, general, slots):
        assert_close(features, slow_general(row, structure), 1e-5)
        for slot, found in zip(structure.asked, per_slot):
            assert_close(found, slow_slot(row, slot), 1e-5)


def test_each_feature_has_a_name(structure):
    dip = DIP(structure)
    general, slots = dip(beliefs(structure, 2))
    assert general.shape[1] == len(dip.general_names) == len(set(dip.general_names))
    assert slots.shape[2] == len(SLOT) == len(set(SLOT))
    assert dip.general_names[-len(JOINT) :] == JOINT
    assert all(0 <= number <= 1 + 1e-5 for number in (*general.flatten(), *slots.flatten()))


def test_divisions_are_not_whole():
    """1 / slots and 1 / values were 0 in the original, the share of believed values 0 or 1."""
    structure = structure_in(DATABASE)
    ear = Ear().hear("hello()", ('inform(food="thai")', 0.5))
    row = torch.from_numpy(ear.summariser.vector(ear.belief, ear.summary))
    general, slots = DIP(structure)(row[None])
    food = next(i for i, slot in enumerate(structure.asked) if slot.name == "food")
    named = dict(zip(SLOT, slots[0, food].tolist()))
    assert named["1 / values"] == pytest.approx(1 / 3)
    assert named["believed"] == pytest.approx(1 / 4)
    assert general[0, DIP(structure).general_names.index("1 / slots")] == pytest.approx(1 / 3)


def permuted():
    """The toy domain, its slots, values and requests in another order; and its structure."""
    slots = ("name", "parking", "area", "price", "food")
    informable = {slot: tuple(reversed(DATABASE.ontology.values(slot))) for slot in slots}
    asked = tuple(reversed(ASKED))
    ontology = Ontology("Toy", "restaurant", informable, tuple(reversed(REQUESTABLE)), asked)
    return EntityDatabase(DATABASE.rows, ontology)


def heard_in(database):
    ear = Ear(database)
    ear.hear("hello()", ('inform(food="thai")', 0.6), ('inform(food="greek")', 0.1))
    ear.hear("request(area)", ('inform(area="north")', 0.7), ("request(phone)", 0.2))
    return torch.from_numpy(ear.summariser.vector(ear.belief, ear.summary))[None]


def test_features_are_equal_in_a_domain_with_permuted_slots():
    one, other = structure_in(DATABASE), structure_in(permuted())
    assert [s.name for s in one.slots] != [s.name for s in other.slots]
    general, slots = DIP(one)(heard_in(DATABASE))
    general_too, slots_too = DIP(other)(heard_in(permuted()))
    assert_close(general_too, general)
    order = [[s.name for s in other.asked].index(slot.name) for slot in one.asked]
    assert_close(slots_too[:, order], slots)


def test_other_domains_have_the_same_features():
    one = DIP(structure_in(DATABASE))
    other = SlotFilling(domain="Laptops").acts["system"].structure
    assert same_features(one, DIP(other))
    fewer = {name: span for name, span in other.blocks.items() if name != "counts"}
    assert not same_features(one, DIP(dataclasses.replace(other, blocks=fewer)))


def test_nothing_of_it_is_saved():
    assert not DIP(structure_in(DATABASE)).state_dict()
