"""The player of Tinker's door: the cookbook's own rollout of a group, and its training data."""

import asyncio

from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.data_processing import trajectory_to_data
from tinker_cookbook.rl.rollouts import do_group_rollout

from dialgym.bridges import tinker
from tests.doors.token_record import END, TOKENIZER, record_of_tokens, sampled


class Scripted(TokenCompleter):
    """A policy that says the texts one after the other."""

    def __init__(self, texts):
        self.turns = sampled(texts)

    async def __call__(self, model_input, stop, *, max_tokens=None):
        assert stop == [END]
        ids = next(self.turns)
        return TokensWithLogprobs(ids, [-1.0] * len(ids))


def play(env_id, settings, seed, texts):
    """Play the texts in a group of one."""
    (group,) = tinker.groups(env_id, TOKENIZER, 1, 1, seed=seed, **settings)
    rollout = asyncio.run(do_group_rollout(group, Scripted(texts)))
    (trajectory,) = rollout.trajectories_G
    (datum,) = trajectory_to_data(
        trajectory, 1.0
    )  # one sequence: observations are only appended to
    ids, masks = sequence_of(datum)
    steps, last = trajectory.transitions, trajectory.transitions[-1].metrics
    parts = [part(step.metrics) for step in steps]
    told = {
        "turn_rewards": [step.reward for step in steps],
        "components": parts,
        "closing": steps[-1].logs["heard"],
        **last,
    }
    assert rollout.get_total_rewards() == [sum(told["turn_rewards"])]
    return record_of_tokens(group.row["prompt"], ids, masks, told)


def part(metrics):
    """The parts of a turn's reward by name."""
    names = [name for name in metrics if name.startswith("reward/")]
    return {name.removeprefix("reward/"): metrics[name] for name in names}


def sequence_of(datum):
    """Ids of a training sequence, and 1 for each that is trained on."""
    inputs = datum.loss_fn_inputs
    first, *_ = datum.model_input.to_ints()
    masks = [int(own) for own in inputs["mask"].to_torch()]
    assert [int(p) for p in inputs["logprobs"].to_torch()] == [-own for own in masks]
    return [first, *inputs["target_tokens"].to_torch().tolist()], [0, *masks]
