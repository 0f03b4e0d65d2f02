"""Sharded training: weights, gradients and optimizer state in shares, one for each process.

PyTorch's `fully_shard` (FSDP2; Rajbhandari et al. 2020 call it stage 3). An update keeps shares:
the weights of a block are gathered while it is read, and its gradients are summed into shares.
A rollout keeps all weights, so that processes need not read in step with one another while their
dialogues differ, and the first may evaluate by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import distribute_tensor

from agents.distributed.sharding import Sharding, new_optimizer, trained_by, whole


class FSDPSharding(Sharding):
    """The shares of a policy, and of its optimizer, in PyTorch's FSDP2.

    Args:
        policy: a GPT policy; from now on its weights are gathered, or in shares.
        count: processes.
        reshard: an update frees gathered weights after the forward pass, and gathers them again.
    """

    def __init__(self, policy: Any, count: int, reshard: bool = True) -> None:
        super().__init__(policy)
        self.reshard = reshard
        device = next(policy.parameters()).device.type
        mesh = init_device_mesh(device, (count,))
        for part in blocks_of(policy):
            fully_shard(part, mesh=mesh)
        fully_shard(policy, mesh=mesh)
        register_fsdp_forward_method(policy, "evaluate_sequences")
        for module in self._modules():
            # Losses are divided by the decisions of all processes: gradients add up.
            module.set_force_sum_reduction_for_comms(True)
            module.set_gradient_divide_factor(1.0)
        policy.optimizer = _sharded_optimizer(policy, mesh)
        self.gather()

    def _modules(self) -> Iterator[FSDPModule]:
        return (module for module in self.policy.modules() if isinstance(module, FSDPModule))

    def gather(self) -> None:
        """All weights in every process."""
        for module in self._modules():
            module.set_reshard_after_forward(False, recurse=False)
            module.unshard()

    def scatter(self) -> None:
        """Sharding alone, as updates want them."""
        for module in self._modules():
            module.set_reshard_after_forward(self.reshard, recurse=False)
            module.reshard()

    def _groups(self) -> list[dict[str, Any]]:
        groups: list[dict[str, Any]] = self.policy.optimizer.state_dict()["param_groups"]
        return groups

    def _whole_state(self) -> dict[int, dict[str, Any]]:
        return {
            number: {name: whole(value) for name, value in values.items()}
            for number, values in self.policy.optimizer.state_dict()["state"].items()
        }


def blocks_of(policy: Any) -> list[nn.Module]:
    """The layers of a policy's backbones, whichever model they are of."""
    found: list[nn.Module] = []
    for backbone in filter(None, (policy.backbone, policy.value_backbone)):
        lists: list[list[nn.Module]] = [
            list(m) for m in backbone.modules() if isinstance(m, nn.ModuleList)
        ]
        found += sorted(lists, key=len)[-1] if lists else []
    return found


def _sharded_optimizer(policy: Any, mesh: DeviceMesh) -> torch.optim.Optimizer:
    """The policy's optimizer over the shares, its state with them."""
    old, new = policy.optimizer.state_dict()["state"], new_optimizer(policy)
    for number, p in enumerate(trained_by(policy)):
        for name, value in old.get(number, {}).items():
            alike = isinstance(value, Tensor) and value.shape == p.shape
            new.state[p][name] = distribute_tensor(value, mesh, p.placements) if alike else value
    return new
