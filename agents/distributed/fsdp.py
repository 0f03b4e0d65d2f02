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
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.utils import clip_grad_norm_


class Sharding:
    """What processes that share the learning of a policy do together, each at the same time."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.optimizer_state: dict[str, Any] | None = None  # all of it, while it is being saved

    def scatter(self) -> None:
        """Make ready for an update."""

    def gather(self) -> None:
        """Make ready for rollouts and files, which want all weights in every process."""

    def backward(self, loss: Tensor, last: bool) -> None:
        """Accumulate gradients, and add up those of all processes when it is the `last` loss."""
        loss.backward()

    def clip(self, max_norm: float) -> float:
        """Clip the gradient; its norm before."""
        return float(whole(clip_grad_norm_(self.policy.parameters(), max_norm)))

    def state(self) -> dict[str, Any]:
        """What is saved of the policy and its optimizer, while weights are gathered.

        The optimizer begins anew where its state was not gathered (`gather_optimizer`).
        """
        optimizer = self.optimizer_state or {"state": {}, "param_groups": self._groups()}
        return {"policy": weights_of(self.policy), "policy.optimizer": optimizer}

    def gather_optimizer(self) -> None:
        """Gather the optimizer's state for `state`."""
        self.optimizer_state = {"state": self._whole_state(), "param_groups": self._groups()}

    def _groups(self) -> list[dict[str, Any]]:
        """The optimizer's groups, as an unshared one saves them."""
        raise NotImplementedError

    def _whole_state(self) -> dict[int, dict[str, Any]]:
        """The optimizer's state, as an unshared one saves it."""
        raise NotImplementedError

    def leave(self) -> None:
        """Let go of the policy."""


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


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """The state of a module whose weights are gathered; `state_dict` itself would shard them."""
    named = [*module.named_parameters(remove_duplicate=False), *_kept_buffers(module)]
    return {name: tensor.detach() for name, tensor in named}


def _kept_buffers(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for path, part in module.named_modules():
        for name, buffer in part._buffers.items():
            if buffer is not None and name not in part._non_persistent_buffers_set:
                yield f"{path}.{name}" if path else name, buffer


def _sharded_optimizer(policy: Any, mesh: DeviceMesh) -> torch.optim.Optimizer:
    """The policy's optimizer over the shares, its state with them."""
    old, new = policy.optimizer.state_dict()["state"], new_optimizer(policy)
    for number, p in enumerate(trained_by(policy)):
        for name, value in old.get(number, {}).items():
            alike = isinstance(value, Tensor) and value.shape == p.shape
            new.state[p][name] = distribute_tensor(value, mesh, p.placements) if alike else value
    return new


def trained_by(policy: Any) -> list[Any]:
    """The weights that a policy's optimizer has, in its order."""
    return [p for p in policy.parameters() if p.requires_grad]


def new_optimizer(policy: Any) -> Any:
    """An optimizer as the policy's own, without its state."""
    [group] = policy.optimizer.param_groups
    new = policy.optimizer_class(trained_by(policy), lr=group["lr"], **policy.optimizer_kwargs)
    new.param_groups[0].update({k: v for k, v in group.items() if k != "params"})
    return new


def whole(value: Any) -> Any:
    """A tensor of which this process has a share, gathered; anything else as it is."""
    return value.full_tensor() if isinstance(value, DTensor) else value
