"""Print how fast the learners are; rates are per CPU-second of one thread."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import torch

from benchmarks.environments.__main__ import show
from benchmarks.environments.timing import Figure, print_machine
from benchmarks.training import (
    beside_trl,
    grpo,
    language,
    launches,
    length,
    memory,
    offline,
    reply,
    tiny,
)
from dialgym.errors import unknown

PARTS: Mapping[str, Callable[[int], Iterator[Figure]]] = MappingProxyType(
    {
        "tiny": lambda repeats: tiny.figures(),
        "iteration": lambda repeats: reply.iteration_figures(min(repeats, 3)),
        "rollout": reply.all_rollout_figures,
        "update": reply.update_figures,
        "length": length.figures,
        "language": lambda repeats: language.figures(min(repeats, 3)),
        "offline": offline.figures,
        "memory": lambda repeats: memory.figures(),
        "grpo": lambda repeats: grpo.figures(),
        "launches": lambda repeats: launches.figures(min(repeats, 3)),
        "trl": beside_trl.figures,
    }
)
"""Figures by part, of so many rounds."""


def figures(parts: list[str], repeats: int) -> Iterator[Figure]:
    """Figures of the parts that are asked for."""
    for name, part in PARTS.items():
        if name in parts:
            yield from part(repeats)


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
    print_machine(PyTorch=torch.__version__)
    show(list(figures(arguments.parts or list(PARTS), arguments.repeats)))


if __name__ == "__main__":
    main()
