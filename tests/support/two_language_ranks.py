"""Run by torchrun: two processes learn from replies what one does from all of them."""

import sys
from dataclasses import fields
from itertools import chain

import numpy as np
import torch

import dialgym
from agents import GRPO, NLPO, SequencePPO
from agents.buffers.sequences import Rollout, Sequences
from agents.distributed.processes import Processes

SMALL = {"n_layer": 1, "n_head": 2, "n_embd": 16}
REWARDS = {"meteor": 0.5, "distinct1": 0.3, "length": 0.2}
EVERYTHING = 100_000  # one minibatch an epoch, so that it does not matter how it is dealt
ROWS, STEPS = 4, 24


class Alone(Processes):
    """One process that knows of no other."""

    def __init__(self) -> None:
        self.count, self.rank = 1, 0


def made(algorithm, **more):
    env = dialgym.sb3_vec_env("dialgym/DailyDialog-v0", ROWS, rewards=REWARDS, reply_tokens=8)
    common = {"n_steps": STEPS, "batch_size": EVERYTHING, "n_epochs": 3, "seed": 1}
    common |= {
        "kl": {"coef": 0.1},
        "learning_rate": 0.003,
        "ent_coef": 0.01,
        "policy_kwargs": SMALL,
    }
    model = algorithm("GPTPolicy", env, **common, **more)
    with torch.no_grad():  # away from where everything is flat
        model.policy.policy_head.weight.mul_(2)
    return model


def union(parts) -> Rollout:
    """The rollouts of all processes as that of one."""
    sequences = [part.sequences for part in parts]
    width = max(one.tokens.shape[1] for one in sequences)
    pad = torch.nn.functional.pad
    sizes = np.concatenate([one.sizes for one in sequences])
    whole = Sequences(
        tokens=torch.cat([pad(one.tokens, (0, width - one.tokens.shape[1])) for one in sequences]),
        lengths=np.concatenate([one.lengths for one in sequences]),
        first=np.concatenate([[0], sizes.cumsum()]),
        places=np.concatenate([one.places for one in sequences]),
        steps=np.arange(sum(map(len, sequences))),
        columns={
            name: torch.cat([one.columns[name] for one in sequences])
            for name in sequences[0].columns
        },
    )
    columns = [field.name for field in fields(Rollout)][1:]
    return Rollout(
        whole,
        **{
            name: None
            if getattr(parts[0], name) is None
            else torch.cat([getattr(part, name) for part in parts])
            for name in columns
        },
    )


def improved(model):
    """What an update logs, and the weights after it."""
    model.train()
    logged = {
        name: v for name, v in model.logger.name_to_value.items() if name.startswith("train/")
    }
    return logged, model.policy.parameters_to_vector()


def two_are_one(algorithm, **more) -> None:
    together, alone = made(algorithm, **more), made(algorithm, **more)
    processes = together.processes
    _, callback = together._setup_learn(1000)
    callback.on_training_start({}, {})
    alone._setup_learn(1000)
    alone.policy.load_state_dict(together.policy.state_dict())
    together.collect_rollouts(together.env, callback, together.rollout_buffer, STEPS)
    parts = processes.gather(together.rollout)
    first, second = (part.sequences.tokens[:4, :4] for part in parts)
    assert not np.array_equal(first, second)
    rewards = together.rollout_buffer.steps("rewards")
    assert len(set(chain(*rewards.tolist()))) > 2, "replies earned nothing"
    alone.processes = alone.updater.processes = Alone()
    alone.rollout = union(parts)
    (logged, weights), (expected, others) = improved(together), improved(alone)
    for name in ("train/loss", "train/approx_kl", "train/entropy", "train/grad_norm"):
        np.testing.assert_allclose(logged[name], expected[name], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(weights, others, atol=1e-4)
    assert np.abs(expected["train/loss"]) > 1e-3


def main(expected: int) -> None:
    torch.set_num_threads(1)
    processes = Processes()
    assert processes.count == expected
    two_are_one(SequencePPO)
    two_are_one(NLPO, top_p=0.8)
    two_are_one(GRPO, group_size=2)
    sys.stdout.write(f"rank {processes.rank} is right\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
