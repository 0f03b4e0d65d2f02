"""Operations of processes that share a policy's weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_


class Sharding:
    """A policy in shares; each method is called by all processes at the same time."""

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
        """The saved state of the policy and its optimizer, while weights are gathered.

        The optimizer begins again where its state was not gathered (`gather_optimizer`).
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


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """The state of a module whose weights are gathered; `state_dict` itself would shard them."""
    named = [*module.named_parameters(remove_duplicate=False), *_kept_buffers(module)]
    return {name: tensor.detach() for name, tensor in named}


def _kept_buffers(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for path, part in module.named_modules():
        for name, buffer in part._buffers.items():
            if buffer is not None and name not in part._non_persistent_buffers_set:
                yield f"{path}.{name}" if path else name, buffer


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
    """Gather a tensor that is sharded over processes; return any other value unchanged."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value
