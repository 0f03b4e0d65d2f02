"""GRPO of a GPT of 4 layers of 256 beside that of TRL: equal weights, prompts, replies and rewards.

Before each step of TRL's trainer ours does one iteration, so that the load meets both alike. A step
of either is a rollout of every dialogue, its rewards and one pass of gradients over it, in float32
on one thread; what TRL does once (its set-up) is not counted. Ours draws only tokens that the task
allows, TRL of the whole vocabulary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from agents.online.grpo import GRPO
from benchmarks.environments.timing import Figure
from benchmarks.training.learner import Learner
from benchmarks.training.workload import REPLY, Reply, components_of, reply_env
from dialgym.optional import require

DIALOGUES, GROUP, PIECE = (32, 128), 8, 32
"""Dialogues of a rollout, of a group, and of a forward of TRL, which is slower with 128 at once."""
RATE = 1e-6
"""Learning rate, so small that replies stay as long as they are at first."""


def figures(repeats: int) -> Iterator[Figure]:
    """Tokens said a CPU-second in whole iterations; none where TRL is not installed."""
    if find_spec("trl") is None:
        print("trl is not installed (pip install trl): no figures beside its GRPO\n")
        return
    for dialogues in DIALOGUES:
        ours, theirs = measure(dialogues, repeats)
        usual = Figure(f"GRPO of TRL, {dialogues} dialogues, tokens", median(theirs), "/s")
        yield usual
        what = f"GRPO of agents, {dialogues} dialogues, tokens"
        yield Figure(what, median(ours), "/s", None, usual, "TRL")


def measure(dialogues: int, repeats: int, policy: Any = None) -> tuple[list[float], list[float]]:
    """Tokens said a CPU-second in each of `repeats` iterations of ours and of TRL's.

    Args:
        dialogues: of a rollout.
        repeats: iterations, after one that is not measured.
        policy: arguments of the policy; by default a "mini" GPT.
    """
    learner = Learner(
        reply_env(dialogues),
        REPLY,
        dialogues * REPLY,
        1,
        policy,
        GRPO,
        group_size=GROUP,
        learning_rate=RATE,
    )
    ours: list[float] = []
    theirs: list[float] = []

    def iterate() -> int:
        before = learner.ppo.num_timesteps
        learner.iterate()
        return learner.ppo.num_timesteps - before

    with TemporaryDirectory() as folder:
        learner.ppo.policy.save_pretrained(folder + "/model")
        trainer, said = trl_trainer(folder, dialogues, repeats + 1)
        turns = turns_with(lambda: ours.append(_rate(iterate)), said, theirs)
        trainer.add_callback(turns)
        trainer.train()
    return ours[1:], theirs[1:]


def _rate(work: Callable[[], int]) -> float:
    start = time.process_time()
    done = work()
    return done / (time.process_time() - start)


def trl_trainer(folder: str, dialogues: int, steps: int) -> tuple[Any, list[int]]:
    """TRL's trainer of the model in `folder`, and a list that takes the tokens of each step."""
    trl, transformers = require("trl", "agents", "trl"), require("transformers", "agents", "trl")
    transformers.logging.set_verbosity_error()
    said: list[int] = []

    def reward(
        completions: list[str], completion_ids: list[list[int]], reference: list[str], **_: Any
    ) -> list[float]:
        said.append(sum(map(len, completion_ids)))
        return [sum(components_of(*pair).values()) for pair in zip(completions, reference)]

    config = trl.GRPOConfig(
        folder + "/trainer",
        per_device_train_batch_size=min(dialogues, PIECE),
        gradient_accumulation_steps=max(dialogues // PIECE, 1),
        num_generations=GROUP,
        max_completion_length=REPLY,
        max_steps=steps,
        learning_rate=RATE,
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(folder + "/model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder + "/model")
    rows = prompts(dialogues // GROUP * steps)
    trainer = trl.GRPOTrainer(model, reward, config, rows, processing_class=tokenizer)
    return trainer, said


def prompts(count: int) -> Any:
    """Dialogues of `Reply` as a data set of TRL: prompts as the token view has them, references."""
    task, rng = Reply(), np.random.default_rng(1)
    states = [task.initial(rng) for _ in range(count)]
    rows = [
        {
            "prompt": "".join(f"<{line.speaker}>{line.text}<end>" for line in state.lines)
            + "<system>",
            "reference": state.reference,
        }
        for state in states
    ]
    return require("datasets", "agents", "trl").Dataset.from_list(rows)


def turns_with(before: Callable[[], object], said: list[int], rates: list[float]) -> Any:
    """A callback of a trainer that does `before` ahead of each step, and measures the step.

    Args:
        before: is not measured.
        said: tokens of each step so far.
        rates: takes tokens a CPU-second.
    """
    transformers = require("transformers", "agents", "trl")

    class Turns(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        """See above."""

        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            before()
            self.start = time.process_time()

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            rates.append(said[-1] / (time.process_time() - self.start))

    return Turns()
