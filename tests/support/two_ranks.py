"""Run by torchrun in two processes: what test_ranks.py asks of data parallel training."""

import sys

import numpy as np
import torch

import dialgym
from agents import SequencePPO
from agents.distributed.processes import Processes

SMALL = {"n_layer": 1, "n_head": 1, "n_embd": 16}


class Alone(Processes):
    """One process that knows of no other."""

    def __init__(self) -> None:
        self.count, self.rank = 1, 0


def made(**settings) -> SequencePPO:
    env = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 6)
    common = {"n_steps": 12, "batch_size": 36, "n_epochs": 2, "policy_kwargs": SMALL}
    return SequencePPO("GPTPolicy", env, **{**common, **settings})


def same_everywhere(model: SequencePPO) -> bool:
    first, *others = model.processes.gather(model.policy.parameters_to_vector())
    return all((first == other).all() for other in others)


def gradients_are_those_of_the_union() -> None:
    model = made(seed=3, normalize_advantage=False)
    _, callback = model._setup_learn(1000)
    torch.nn.init.normal_(model.policy.value_head.linear.weight)
    model.processes.agree(model.policy.parameters())
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 12)
    rolled = model.processes.gather(model.rollout_buffer.steps("actions"))
    assert not np.array_equal(*rolled), "both processes played the same dialogues"
    sequences = model.rollout.sequences
    chosen = np.arange(len(sequences.sizes) - 2 * model.processes.rank)  # of different sizes
    count = int(sequences.sizes[chosen].sum())
    model.updater.backward(model.loss, model.batches(chosen), count)
    together = model.policy.backbone.wte.weight.grad.clone()
    processes = model.processes
    model.processes = model.updater.processes = Alone()
    model.updater.backward(model.loss, model.batches(chosen), count)
    alone = processes.gather((count, model.policy.backbone.wte.weight.grad.numpy()))
    expected = sum(n * grad for n, grad in alone) / sum(n for n, _ in alone)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(together, expected, atol=1e-6)


def main(expected: int) -> None:
    torch.set_num_threads(1)
    gradients_are_those_of_the_union()
    model = made()  # without a seed: weights differ until learning begins
    assert model.processes.count == expected
    assert not same_everywhere(model)
    model.learn(4 * 12 * 6 * expected)
    assert model.num_timesteps == 4 * 12 * 6 * expected
    assert model._n_updates == 8
    assert same_everywhere(model)
    stopped = made(seed=1, target_kl=1e-9, learning_rate=0.01)
    stopped.learn(2 * 12 * 6 * expected)
    assert same_everywhere(stopped)
    sys.stdout.write(f"rank {model.processes.rank} is right\n")  # in one piece: two processes write


if __name__ == "__main__":
    main(int(sys.argv[1]))
