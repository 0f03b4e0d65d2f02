"""Run by torchrun in two processes: what test_ranks.py asks of data parallel offline learning."""

import os
import sys

import torch

import dialgym
from agents import BC, ILQL
from agents.distributed.processes import Processes

SMALL = {"n_layer": 1, "n_head": 1, "n_embd": 16}
ID = "dialgym/Wordle-20-v0"


class Alone(Processes):
    """One process that knows of no other."""

    def __init__(self) -> None:
        self.count, self.rank = 1, 0


def made(algorithm, games, **settings):
    env = dialgym.sb3_vec_env(ID, 2)
    common = {"policy_kwargs": SMALL, "batch_size": 9, "learning_rate": 0.01}
    return algorithm("GPTPolicy", env, games, **{**common, **settings})


def steps_are_those_of_the_union(algorithm, games) -> None:
    """Batches of an odd number of dialogues of unequal length: means of means would differ."""
    together, alone = made(algorithm, games, seed=5), made(algorithm, games, seed=5)
    alone.processes = alone.updater.processes = Alone()
    read = []
    batch = together.data.batch

    def noted(rows, *arguments, **more):
        read.append(rows)
        return batch(rows, *arguments, **more)

    object.__setattr__(together.data, "batch", noted)
    together.learn(3)
    alone.learn(3)
    object.__delattr__(together.data, "batch")
    shares = together.processes.gather([rows.tolist() for rows in read])
    for first, second in zip(*shares, strict=True):
        assert (len(first), len(second)) == (5, 4), "each process reads its share"
        assert not set(first) & set(second)
    for a, b in zip(together.policy.parameters(), alone.policy.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)


def one_policy_without_a_seed(algorithm, games) -> None:
    model = made(algorithm, games)
    model.learn(2)
    first, second = model.processes.gather(model.policy.parameters_to_vector())
    assert (first == second).all()


def main(expected: int) -> None:
    torch.set_num_threads(1)
    games = dialgym.collect(ID, "random-mixture", 40, seed=0)
    for algorithm in (BC, ILQL):
        processes = made(algorithm, games).processes
        assert processes.count == expected
        steps_are_those_of_the_union(algorithm, games)
        one_policy_without_a_seed(algorithm, games)
    processes.wait()
    sys.stdout.write(f"rank {processes.rank} is right\n")  # in one piece: two processes write
    sys.stdout.flush()
    os._exit(0)  # gloo's threads, where pyarrow is loaded too, at times abort an ordinary exit


if __name__ == "__main__":
    main(int(sys.argv[1]))
