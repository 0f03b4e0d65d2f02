"""The hierarchy of acts, and networks over it that do not depend on the domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from agents.acts.dip import DIP, Features, same_features
from agents.models.act_masks import masked
from dialgym.tasks import BeliefStructure

GIVE_INFO, REQUEST_INFO = 0, 1
"""The master's choices: an act that is about no slot in particular, or one about a slot."""


class Hierarchy(nn.Module):
    """Acts under each choice of the master; nothing to learn, and nothing to save.

    Args:
        structure: of the domain. General acts are in alphabetical order here, so that a domain that
            has them in another still finds its own.

    Raises:
        ValueError: the acts about one slot are of other kinds than those about another.
    """

    def __init__(self, structure: BeliefStructure) -> None:
        super().__init__()
        self.general_names = tuple(sorted(structure.general))
        self.kinds = tuple(structure.asked[0].acts)
        for slot in structure.asked:
            if set(slot.acts) != set(self.kinds):
                raise ValueError(
                    f"feudal policies: expected acts about {slot.name!r} of the kinds "
                    f"{', '.join(self.kinds)}; got {', '.join(slot.acts)}"
                )
        general = [structure.general[name] for name in self.general_names]
        about = torch.tensor([[s.acts[kind] for kind in self.kinds] for s in structure.asked])
        branches, slots = torch.zeros(2, structure.n_acts, dtype=torch.long)
        branches[about] = REQUEST_INFO
        slots[about] = torch.arange(len(about))[:, None]
        place = torch.cat((torch.tensor(general), about.flatten())).argsort()
        self.register_buffer("place", place, persistent=False)
        self.register_buffer("branches", branches, persistent=False)
        self.register_buffer("slots", slots, persistent=False)

    place: Tensor  # (A,): of each act, among the general ones and then those of slot after slot
    branches: Tensor  # (A,): what the master chooses for it
    slots: Tensor  # (A,): the slot that it is about; 0 where there is none

    def flat(self, general: Tensor, slots: Tensor) -> Tensor:
        """(n, A): numbers of the general acts (n, E) and those about slots (n, S, K)."""
        return torch.cat((general, slots.flatten(1)), 1)[:, self.place]

    def branches_allowed(self, masks: Tensor) -> Tensor:
        """(n, 2): the choices under which masks (n, A) allow an act."""
        within = [(masks & (self.branches == b)).any(1) for b in (GIVE_INFO, REQUEST_INFO)]
        return torch.stack(within, 1)

    def narrowed(self, masks: Tensor, chosen: Tensor) -> Tensor:
        """(n, A): of the acts that masks allow, those under the master's choices (n,)."""
        return masks & (self.branches == chosen[:, None])


class Parts(NamedTuple):
    """Numbers of the master and of the sub-policies, for n beliefs."""

    master: Tensor  # (n, 2)
    acts: Tensor  # (n, A), each from the sub-policy that it belongs to


class SubPolicies(nn.Module):
    """Two networks over DIP features, of the general acts and of those about any slot.

    The second is given the features of each slot in turn. Weights do not depend on the domain: the
    structure alone says which features and acts there are.

    Args:
        structure: of the domain.
        network: makes a network of so many inputs and outputs.
    """

    def __init__(
        self, structure: BeliefStructure, network: Callable[[int, int], nn.Module]
    ) -> None:
        super().__init__()
        self.dip, self.hierarchy = DIP(structure), Hierarchy(structure)
        general, slot = self.dip.general_size, self.dip.slot_size
        self.general = network(general, len(self.hierarchy.general_names))
        self.slot = network(slot + general, len(self.hierarchy.kinds))

    def forward(self, beliefs: Tensor) -> Any:
        """(n, A): a number of each act, for beliefs (n, B)."""
        return self.acts(self.dip(beliefs))

    def acts(self, features: Features) -> Tensor:
        """(n, A): the same of features."""
        general, slots = features  # (n, G), (n, S, F)
        shared = general[:, None].expand(-1, slots.shape[1], -1)
        about = self.slot(torch.cat((slots, shared), -1).flatten(0, 1))  # (n S, K)
        return self.hierarchy.flat(self.general(general), about.unflatten(0, slots.shape[:2]))


class FeudalNetwork(SubPolicies):
    """Sub-policies and a third network, their master; arguments as of `SubPolicies`."""

    def __init__(
        self, structure: BeliefStructure, network: Callable[[int, int], nn.Module]
    ) -> None:
        super().__init__(structure, network)
        self.master = network(self.dip.general_size, 2)

    def forward(self, beliefs: Tensor) -> Parts:
        """The numbers for beliefs (n, B)."""
        features = self.dip(beliefs)
        return Parts(self.master(features.general), self.acts(features))

    def choose(self, parts: Parts, masks: Tensor) -> tuple[Tensor, Tensor]:
        """The master's choices (n,) and the acts (n,): each the best that masks (n, A) allow."""
        branches = masked(parts.master, self.hierarchy.branches_allowed(masks)).argmax(1)
        return branches, masked(parts.acts, self.hierarchy.narrowed(masks, branches)).argmax(1)

    def log_probs(self, parts: Parts, masks: Tensor) -> Tensor:
        """(n, A): log pi(a) = log pi(c) + log pi(a | c), of logits, over the acts allowed."""
        tree = self.hierarchy
        branches = masked(parts.master, tree.branches_allowed(masks)).log_softmax(1)  # (n, 2)
        give, request = (
            masked(parts.acts, masks & (tree.branches == branch)).log_softmax(1)
            for branch in (GIVE_INFO, REQUEST_INFO)
        )
        within = torch.where(tree.branches == GIVE_INFO, give, request)
        return masked(branches[:, tree.branches] + within, masks)


def check_transfer(old: BeliefStructure, new: BeliefStructure) -> None:
    """Check that weights of one domain apply to another.

    Raises:
        ValueError: it has other features, or other kinds of acts.
    """
    if not same_features(DIP(old), DIP(new)):
        what = "blocks of the belief", tuple(old.blocks), tuple(new.blocks)
    elif Hierarchy(old).general_names != Hierarchy(new).general_names:
        what = "acts", Hierarchy(old).general_names, Hierarchy(new).general_names
    elif Hierarchy(old).kinds != Hierarchy(new).kinds:
        what = "kinds of acts about a slot", Hierarchy(old).kinds, Hierarchy(new).kinds
    else:
        return
    raise ValueError(
        f"a policy of {old.domain} cannot act in {new.domain}: expected the {what[0]} "
        f"{', '.join(what[1])}; got {', '.join(what[2])}"
    )
