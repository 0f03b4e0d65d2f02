"""Prints the instruction sets that PyTorch can be held to on this machine, for `make nightly`."""

import torch

LEVELS = ["default", "avx2", "avx512"]


def capabilities() -> list[str]:
    """Values of `ATEN_CPU_CAPABILITY` that this machine has, the plainest first."""
    best = torch.backends.cpu.get_cpu_capability().lower()
    return LEVELS[: LEVELS.index(best) + 1] if best in LEVELS else ["default"]


if __name__ == "__main__":
    print(*capabilities())
