"""The hierarchy of acts: the best by master and sub-policies, within masks, against slow loops."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from agents.acts.feudal.hierarchy import FeudalNetwork, Hierarchy, Parts, check_transfer
from dialgym.tasks.slot_filling import SlotFilling
from tests.support.close import assert_close


def structure_in(domain):
    return SlotFilling(domain=domain).acts["system"].structure


@pytest.fixture(scope="module")
def structure():
    return structure_in("Restaurants")


@pytest.fixture(scope="module")
def network(structure):
    torch.manual_seed(0)
    return FeudalNetwork(structure, nn.Linear)


@pytest.fixture(scope="module")
def parts(structure):
    rng = torch.Generator().manual_seed(1)
    return Parts(
        torch.randn(200, 2, generator=rng), torch.randn(200, structure.n_acts, generator=rng)
    )


@pytest.fixture(scope="module")
def masks(structure):
    """Of all kinds, some of which leave the master no choice."""
    rng = torch.Generator().manual_seed(2)
    rates = torch.linspace(0.02, 1, 200)[:, None]
    found = torch.rand(200, structure.n_acts, generator=rng) < rates
    found[torch.arange(200), torch.arange(200) % structure.n_acts] = True
    return found


def branch_of(structure, act):
    return 0 if act in structure.general.values() else 1


def test_acts_are_where_their_sub_policy_has_them(structure):
    tree = Hierarchy(structure)
    general = torch.arange(len(structure.general), dtype=torch.float)
    slots = torch.arange(100.0, 100 + 3 * len(structure.asked)).view(-1, 3)
    flat = tree.flat(general[None], slots[None])[0]
    for name, act in structure.general.items():
        assert flat[act] == tree.general_names.index(name)
        assert tree.branches[act] == 0
    for number, slot in enumerate(structure.asked):
        for kind, act in slot.acts.items():
            assert flat[act] == 100 + 3 * number + tree.kinds.index(kind)
            assert (tree.branches[act], tree.slots[act]) == (1, number)


def test_the_best_act_of_the_better_choice(structure, network, parts, masks):
    branches, acts = network.choose(parts, masks)
    for row in range(len(masks)):
        free = np.flatnonzero(masks[row].numpy()).tolist()
        kinds = {branch_of(structure, act) for act in free}
        best = max(kinds, key=lambda kind: float(parts.master[row, kind]))
        mine = [act for act in free if branch_of(structure, act) == best]
        assert branches[row] == best
        assert acts[row] == max(mine, key=lambda act: float(parts.acts[row, act]))


def test_log_probabilities_are_those_of_both_choices(structure, network, parts, masks):
    found = network.log_probs(parts, masks).exp()
    assert_close(found.sum(1), torch.ones(len(masks)))
    assert (found[~masks] == 0).all()
    for row in range(0, len(masks), 7):
        free = np.flatnonzero(masks[row].numpy()).tolist()
        kinds = sorted({branch_of(structure, act) for act in free})
        of_kinds = dict(zip(kinds, parts.master[row, kinds].softmax(0)))
        for kind in kinds:
            mine = [act for act in free if branch_of(structure, act) == kind]
            assert_close(found[row, mine], of_kinds[kind] * parts.acts[row, mine].softmax(0))


def test_one_network_for_all_slots(structure, network):
    """Beliefs in two slots are exchanged, and so are the numbers of their acts."""
    one, other = structure.asked[0], structure.asked[-1]
    swapped = tuple(
        {one.name: _at(one, other), other.name: _at(other, one)}.get(slot.name, slot)
        for slot in structure.slots
    )
    same = FeudalNetwork(dataclasses.replace(structure, slots=swapped), nn.Linear)
    same.load_state_dict(network.state_dict())
    beliefs = torch.rand(5, structure.size)
    before, after = network(beliefs), same(beliefs)
    assert_close(after.master, before.master)
    for kind in one.acts:
        assert_close(after.acts[:, one.acts[kind]], before.acts[:, other.acts[kind]])


def _at(slot, place):
    """A slot that has the acts of another."""
    return dataclasses.replace(place, name=slot.name, acts=slot.acts)


def test_weights_do_not_depend_on_the_domain(network):
    other = FeudalNetwork(structure_in("Laptops"), nn.Linear)
    other.load_state_dict(network.state_dict())
    check_transfer(structure_in("Restaurants"), structure_in("Laptops"))


def test_another_kind_of_domain_is_an_error(structure):
    fewer = {name: act for name, act in structure.general.items() if name != "bye"}
    with pytest.raises(ValueError, match=r"cannot act in .*: expected the acts bye, inform"):
        check_transfer(structure, dataclasses.replace(structure, general=fewer))
    blocks = {name: span for name, span in structure.blocks.items() if name != "offer"}
    with pytest.raises(ValueError, match="expected the blocks of the belief"):
        check_transfer(structure, dataclasses.replace(structure, blocks=blocks))
    first = structure.asked[0]
    changed = dataclasses.replace(first, acts={"request": first.acts["request"]})
    slots = tuple(changed if slot.name == first.name else slot for slot in structure.slots)
    with pytest.raises(ValueError, match="of the kinds request"):
        Hierarchy(dataclasses.replace(structure, slots=slots))
