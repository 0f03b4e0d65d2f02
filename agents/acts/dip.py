"""Domain-independent parametrisation of beliefs (DIP): the same features whatever the domain.

After Wang, Stylianou, Su, Wen and Young (2015, "Learning domain-independent dialogue policies via
ontology parameterisation", SIGDIAL), in the division of Casanueva et al. (2018, arXiv 1803.03232):
general features, which are about no slot in particular, and those of each slot. All are computed
for a batch at once, and none depends on how many slots or values there are, nor on their order.

The original's features differ: there 1 / slots and 1 / values are 0, and the share of values that
are believed 0 or 1 (whole-number division), and the number of values is one of ten bins, of which a
new domain has some that were never trained; here it is its logarithm.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from agents.acts.belief_structure import block_entries, value_entries
from dialgym.tasks import BeliefStructure

MARGINS = 5
"""Bins of the margin between the two most believed values."""
REQUESTED = "requested"
"""The block whose size is the domain's; it is summed up."""
SUMMED_UP = ("top", "none", "entropy", "margin")
SLOT = (
    "top 1", "top 2", "top 3",  # belief in the most believed values, dontcare among them
    "none",  # in no value
    "dontcare",
    "entropy",  # of the block, from 0 to 1
    "believed",  # share of the values, dontcare among them, believed at all
    "accepted",  # whether the first is believed more than none, and than 1 / (values - 0.1)
    "requested",  # whether the user asks for the slot
    "1 / values",
    "log2 values / 8",
    "entropy of the database",
    *(f"margin {k}/{MARGINS}" for k in range(1, MARGINS + 1)),  # one-hot: of the first two
)  # fmt: skip
"""Names of the numbers of a slot."""
JOINT = (
    *(f"{how} {what}" for what in SUMMED_UP for how in ("mean", "least", "greatest")),
    "product of tops",
    "share accepted",
    "1 / slots",
    "most requested",  # of the slots that the user can ask for, believed to be asked for
    "requests",  # expected number of them, in fives, at most 1
)
"""Names of the numbers over all slots, which follow the blocks of `BeliefStructure.blocks`."""


class Features(NamedTuple):
    """Features of n beliefs over S slots."""

    general: Tensor  # (n, G): blocks, and `JOINT`
    slots: Tensor  # (n, S, F): `SLOT`


class DIP(nn.Module):
    """Features of beliefs; it has nothing to learn, and nothing to save.

    Args:
        structure: of the domain's beliefs. Its slots are those that the party has acts about.
    """

    def __init__(self, structure: BeliefStructure) -> None:
        super().__init__()
        slots = structure.asked
        names = [name for name in structure.blocks if name != REQUESTED]
        blocks = dict(block_entries(structure, names))
        self.general_names = (*blocks, *JOINT)
        self.slot_names = SLOT
        buffers = {
            "blocks": [*blocks.values()],  # (D,)
            "requests": list(structure.requests.values()),  # (R,)
            "none": [slot.none for slot in slots],  # (S,)
            "dontcare": [slot.dontcare for slot in slots],
            "requested": [structure.size if s.requested is None else s.requested for s in slots],
            "values": value_entries(slots, structure.size),  # (S, V), padded
        }
        for name, entries in buffers.items():
            self.register_buffer(name, torch.as_tensor(entries, dtype=torch.long), persistent=False)
        counts = torch.tensor([float(slot.values) for slot in slots])
        entropy = torch.tensor([slot.entropy for slot in slots])
        constants = torch.stack((1 / counts, counts.log2() / 8, entropy), -1)  # (S, 3)
        self.register_buffer("counts", counts, persistent=False)
        self.register_buffer("constants", constants.float(), persistent=False)

    blocks: Tensor
    requests: Tensor
    none: Tensor
    dontcare: Tensor
    requested: Tensor
    values: Tensor
    counts: Tensor
    constants: Tensor

    @property
    def general_size(self) -> int:
        """G."""
        return len(self.general_names)

    @property
    def slot_size(self) -> int:
        """F."""
        return len(self.slot_names)

    def forward(self, beliefs: Tensor) -> Features:
        """The features of beliefs (n, B)."""
        beliefs = beliefs.float()
        padded = F.pad(beliefs, (0, 1))  # (n, B + 1): what does not exist is not believed
        values = padded[:, self.values]  # (n, S, V)
        none = beliefs[:, self.none]  # (n, S)
        tops = F.pad(values, (0, 2)).topk(3, -1).values  # (n, S, 3); one value has no second
        top, margin = tops[..., 0], tops[..., 0] - tops[..., 1]
        entropy = self._entropy(values, none)
        accepted = ((top >= none) & (top > 1 / (self.counts - 0.1))).float()
        single = (
            none,
            beliefs[:, self.dontcare],
            entropy,
            (values > 0).sum(-1) / (self.counts + 1),
            accepted,
            padded[:, self.requested],
        )
        constants = self.constants.expand(len(beliefs), -1, -1)
        slots = torch.cat((tops, torch.stack(single, -1), constants, _bins(margin)), -1)
        joint = self._joint(beliefs, torch.stack((top, none, entropy, margin), -1), accepted)
        return Features(torch.cat((beliefs[:, self.blocks], joint), -1), slots)

    def _entropy(self, values: Tensor, none: Tensor) -> Tensor:
        """(n, S): of each slot's block, in units of the greatest."""
        p = torch.cat((values, none[..., None]), -1).clamp(min=0.0)
        return torch.special.entr(p).sum(-1) / (self.counts + 2).log()

    def _joint(self, beliefs: Tensor, summed_up: Tensor, accepted: Tensor) -> Tensor:
        """(n, J): over all slots; `summed_up` is (n, S, 4), `accepted` (n, S)."""
        moments = torch.stack((summed_up.mean(1), summed_up.amin(1), summed_up.amax(1)), -1)
        asks = F.pad(beliefs[:, self.requests], (0, 1))
        rest = (
            summed_up[..., 0].prod(1),
            accepted.mean(1),
            accepted.new_full((len(accepted),), 1 / accepted.shape[1]),
            asks.amax(1),
            (asks.sum(1) / 5).clamp(max=1.0),
        )
        return torch.cat((moments.flatten(1), torch.stack(rest, -1)), -1)


def same_features(one: DIP, other: DIP) -> bool:
    """Return True if two domains have the same features, so that weights apply to both."""
    return one.general_names == other.general_names and one.slot_names == other.slot_names


def _bins(margin: Tensor) -> Tensor:
    """(n, S, MARGINS), one-hot: the fifth of the way from 0 to 1 in which a margin is."""
    which = (margin * MARGINS).long().clamp(0, MARGINS - 1)
    return F.one_hot(which, MARGINS).float()
