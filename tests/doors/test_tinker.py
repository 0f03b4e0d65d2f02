"""Tinker's door against its cookbook: rollouts of groups, training data, metrics and limits."""

import asyncio
import pickle

import pytest

from dialgym.bridges import tinker

pytest.importorskip("tinker_cookbook", reason="needs the extra `tinker`")

from tinker_cookbook.rl.data_processing import (
    assemble_training_data,
    compute_advantages,
)
from tinker_cookbook.rl.metric_util import compute_trajectory_metrics
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, RLDataset

from tests.doors.tinker_player import Scripted
from tests.doors.token_record import TOKENIZER

ID, WORDS = "Wordle-20-v0", ("quiet", "crisp", "level", "habit", "usage", "power")


def group_of(size, seed=1, **settings):
    return tinker.groups(ID, TOKENIZER, 1, size, seed=seed, **settings)[0]


class Members(Scripted):
    """A policy that says the texts in each of the dialogues, which it knows by their prompts."""

    def __init__(self):
        super().__init__([])

    async def __call__(self, model_input, stop, *, max_tokens=None):
        turn = TOKENIZER.decode(model_input.to_ints()).count("<|im_start|>assistant") - 1
        self.turns = iter([TOKENIZER(WORDS[turn])["input_ids"]])
        return await super().__call__(model_input, stop)


def rollout(group):
    return asyncio.run(do_group_rollout(group, Members()))


def test_members_of_a_group_start_alike_and_groups_do_not():
    groups = tinker.groups(ID, TOKENIZER, 2, 3)
    rewards = [
        [[step.reward for step in each.transitions] for each in rollout(group).trajectories_G]
        for group in groups
    ]
    assert [len(members) for members in rewards] == [3, 3]
    assert all(each == members[0] for members in rewards for each in members)
    assert rewards[0][0] != rewards[1][0]


def test_a_group_goes_to_another_process():
    again = pickle.loads(pickle.dumps(group_of(2)))
    assert rollout(again).get_total_rewards() == rollout(group_of(2)).get_total_rewards()


def test_the_cookbook_makes_training_data_and_metrics_of_it():
    groups = [rollout(group) for group in tinker.groups(ID, TOKENIZER, 2, 2)]
    data, places = assemble_training_data(groups, compute_advantages(groups))
    assert [(each["group_idx"], each["traj_idx"]) for each in places] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]
    assert len(data) == 4  # a sequence each
    tags = [tinker.groups(ID, TOKENIZER, 1, 1)[0].logging_tags()] * 2
    found = compute_trajectory_metrics(groups, tags)
    returns = [reward for group in groups for reward in group.get_total_rewards()]
    assert found["env/all/reward/total"] == pytest.approx(sum(returns) / 4)
    assert 0 <= found["env/all/success"] <= 1
    assert found["env/all/reward/wrong guess"] < 0


@pytest.mark.parametrize(("most", "reason"), [(None, "completed"), (20, "max_tokens")])
def test_a_trajectory_names_the_reason_for_which_it_stops(most, reason):
    group = group_of(1, max_length=most)
    (trajectory,) = rollout(group).trajectories_G
    assert trajectory.stop_reason == reason
    last = trajectory.transitions[-1].metrics
    assert last["truncated"] == (reason == "max_tokens")
    assert (len(trajectory.transitions) == 1) == (reason == "max_tokens")


def test_a_dialogue_that_a_limit_cuts_has_its_turns_at_most():
    (trajectory,) = rollout(group_of(1, max_episode_steps=1)).trajectories_G
    assert (len(trajectory.transitions), trajectory.stop_reason) == (1, "max_turns")


def test_groups_come_in_batches():
    dataset = tinker.GroupDataset(tinker.groups(ID, TOKENIZER, 5, 2), 2)
    assert len(dataset) == 2
    assert [group.row["seed"] for index in (0, 1) for group in dataset.get_batch(index)] == [
        *range(4)
    ]


@pytest.mark.parametrize(
    ("form", "own"),
    [
        (Env, tinker.TinkerDialogue),
        (EnvGroupBuilder, tinker.Group),
        (RLDataset, tinker.GroupDataset),
    ],
)
def test_all_methods_of_the_cookbooks_forms_are_there(form, own):
    asked = [name for name in vars(form) if not name.startswith("_")]
    assert [name for name in asked if not hasattr(own, name)] == []
