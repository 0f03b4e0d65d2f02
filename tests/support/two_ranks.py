"""Run in two processes: what test_ranks.py asks of data parallel training.

Kind by kind in one launch, of a process that becomes two once all is imported: a run of
`agents.train`, learners by playing, learners from replies, and learners of stored dialogues.
"""

import os
import signal
import sys
from dataclasses import fields
from importlib import import_module
from itertools import chain

import numpy as np
import torch

import agents
import dialgym
from agents import BC, GRPO, ILQL, NLPO, SequencePPO
from agents.buffers.sequences import Rollout, Sequences
from agents.distributed.processes import Processes

SMALL = {"n_layer": 1, "n_head": 1, "n_embd": 16}
ID = "dialgym/Wordle-20-v0"
REWARDS = {"meteor": 0.5, "distinct1": 0.3, "length": 0.2}
EVERYTHING = 100_000  # one minibatch an epoch, so that it does not matter how it is dealt
ROWS, STEPS = 4, 24


class Alone(Processes):
    """One process that knows of no other."""

    def __init__(self) -> None:
        self.count, self.rank = 1, 0


def right(processes) -> None:
    sys.stdout.write(f"rank {processes.rank} is right\n")  # in one piece: two processes write
    sys.stdout.flush()


# Learning by playing


def player(**settings) -> SequencePPO:
    env = dialgym.sb3_vec_env(ID, 6)
    common = {"n_steps": 12, "batch_size": 36, "n_epochs": 2, "policy_kwargs": SMALL}
    return SequencePPO("GPTPolicy", env, **{**common, **settings})


def same_everywhere(model: SequencePPO) -> bool:
    first, *others = model.processes.gather(model.policy.parameters_to_vector())
    return all((first == other).all() for other in others)


def gradients_are_those_of_the_union() -> None:
    model = player(seed=3, normalize_advantage=False)
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


def learners_by_playing(expected: int) -> None:
    gradients_are_those_of_the_union()
    model = player()  # without a seed: weights differ until learning begins
    assert model.processes.count == expected
    assert not same_everywhere(model)
    model.learn(4 * 12 * 6 * expected)
    assert model.num_timesteps == 4 * 12 * 6 * expected
    assert model._n_updates == 8
    assert same_everywhere(model)
    stopped = player(seed=1, target_kl=1e-9, learning_rate=0.01)
    stopped.learn(2 * 12 * 6 * expected)
    assert same_everywhere(stopped)
    right(model.processes)


# Replies: two processes learn what one does from all of them


def replier(algorithm, **more):
    env = dialgym.sb3_vec_env("dialgym/DailyDialog-v0", ROWS, rewards=REWARDS, reply_tokens=8)
    common = {"n_steps": STEPS, "batch_size": EVERYTHING, "n_epochs": 3, "seed": 1}
    common |= {"kl": {"coef": 0.1}, "learning_rate": 0.003, "ent_coef": 0.01}
    common["policy_kwargs"] = {**SMALL, "n_head": 2}
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
    """The log of an update, and the weights after it."""
    model.train()
    logged = {
        name: v for name, v in model.logger.name_to_value.items() if name.startswith("train/")
    }
    return logged, model.policy.parameters_to_vector()


def two_are_one(algorithm, **more) -> None:
    together, alone = replier(algorithm, **more), replier(algorithm, **more)
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


def learners_of_replies(processes) -> None:
    two_are_one(SequencePPO)
    two_are_one(NLPO, top_p=0.8)
    two_are_one(GRPO, group_size=2)
    right(processes)


# Stored dialogues


def offline(algorithm, games, **settings):
    env = dialgym.sb3_vec_env(ID, 2)
    common = {"policy_kwargs": SMALL, "batch_size": 9, "learning_rate": 0.01}
    return algorithm("GPTPolicy", env, games, **{**common, **settings})


def steps_are_those_of_the_union(algorithm, games) -> None:
    """Batches of an odd number of dialogues of unequal length: means of means would differ."""
    together, alone = offline(algorithm, games, seed=5), offline(algorithm, games, seed=5)
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
    model = offline(algorithm, games)
    model.learn(2)
    first, second = model.processes.gather(model.policy.parameters_to_vector())
    assert (first == second).all()


def learners_of_stored_dialogues(expected: int) -> None:
    games = dialgym.collect(ID, "random-mixture", 40, seed=0)
    for algorithm in (BC, ILQL):
        processes = offline(algorithm, games).processes
        assert processes.count == expected
        steps_are_those_of_the_union(algorithm, games)
        one_policy_without_a_seed(algorithm, games)
    processes.wait()
    right(processes)


def become_ranks(count: int, meeting: str) -> None:
    """Go on as `count` processes that meet at a file; they have what torchrun tells its own."""
    for name in ("accelerate", "agents.training.run", "nltk", "tensorboard", "torch._dynamo"):
        import_module(name)  # once, and not in each
    for rank in range(count):
        if not os.fork():
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count)}
            os.environ |= {"MASTER_ADDR": "none", "MASTER_PORT": "0"}  # which Accelerate asks for
            torch.distributed.init_process_group(
                "gloo", f"file://{meeting}", rank=rank, world_size=count
            )
            return
    for _ in range(count):
        if os.wait()[1]:
            os.killpg(0, signal.SIGKILL)  # the other waits for the one that has failed
    sys.exit()


def main(expected: str, games: str, folder: str) -> None:
    torch.set_num_threads(1)
    become_ranks(int(expected), f"{folder}-meeting")
    small = {"batch_size": 8, "policy_kwargs": {"n_layer": 1, "n_embd": 16}}
    agents.train(
        "Wordle-20-v0", "bc", total_timesteps=10, data=games, hyperparameters=small,
        log_dir=folder, progress_bar=False,
    )  # fmt: skip
    processes = Processes()
    assert processes.count == int(expected)
    learners_by_playing(int(expected))
    learners_of_replies(processes)
    learners_of_stored_dialogues(int(expected))
    os._exit(0)  # gloo's threads, where pyarrow is loaded too, at times abort an ordinary exit


if __name__ == "__main__":
    main(*sys.argv[1:])
