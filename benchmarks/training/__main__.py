"""Print how fast the learners are; rates are per CPU-second of one thread."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import torch

from benchmarks.environments.__main__ import show
from benchmarks.environments.timing import Figure, machine
from benchmarks.training import grpo, language, length, memory, offline, reply, tiny
from dialgym.errors import unknown

PARTS = (
    "tiny",
    "iteration",
    "rollout",
    "update",
    "length",
    "language",
    "offline",
    "memory",
    "grpo",
)


def figures(parts: list[str], repeats: int) -> Iterator[Figure]:
    """Those of the parts asked for."""
    if "tiny" in parts:
        yield from tiny.figures()
    if "iteration" in parts:
        yield from reply.iteration_figures(min(repeats, 3))
    if "rollout" in parts:
        for n_envs in reply.ENVS:
            yield from reply.rollout_figures(n_envs, repeats)
    if "update" in parts:
        yield from reply.update_figures(repeats)
    if "length" in parts:
        yield from length.figures(repeats)
    if "language" in parts:
        yield from language.figures(min(repeats, 3))
    if "offline" in parts:
        yield from offline.figures(repeats)
    if "memory" in parts:
        yield from memory.figures()
    if "grpo" in parts:
        yield from grpo.figures()


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser("python -m benchmarks.training", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--repeats", type=int, default=5, help="rounds, whose median counts")
    arguments = parser.parse_args()
    for part in arguments.parts:
        if part not in PARTS:
            parser.error(str(unknown("part", part, PARTS)))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(*(f"{name}: {value}" for name, value in machine().items()), sep="\n")
    print(f"PyTorch: {torch.__version__}\n")
    show(list(figures(arguments.parts or list(PARTS), arguments.repeats)))


if __name__ == "__main__":
    main()
