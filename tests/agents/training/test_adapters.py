"""Learners of words with LoRA: an update moves the adapters of the trunk and nothing else there."""

import pytest
import torch

import agents
import dialgym

ID = "dialgym/Wordle-20-v0"
SMALL = {"n_layer": 1, "n_head": 2, "n_embd": 16, "lora": {"r": 2}}
LEARNERS = {
    "GRPO": (agents.GRPO, {"loss_type": "grpo"}),
    "DAPO": (agents.GRPO, {"loss_type": "dapo"}),
    "CISPO": (agents.GRPO, {"loss_type": "cispo"}),
    "GSPO": (agents.GRPO, {"loss_type": "grpo", "importance_sampling_level": "sequence"}),
    "expert iteration": (agents.ExpertIteration, {}),
    "offline ArCHer": (agents.OfflineArCHer, {}),
    "ILQL": (agents.ILQL, {}),
    "Cal-QL": (agents.CQL, {"calibrated": True}),
}


@pytest.fixture(scope="module")
def games():
    return dialgym.collect(ID, "random-mixture", 24, seed=0)


@pytest.mark.parametrize("name", LEARNERS)
def test_an_update_moves_the_adapters_of_the_trunk_alone(name, games):
    algorithm, settings = LEARNERS[name]
    plays = issubclass(algorithm, agents.GRPO | agents.ExpertIteration)
    given = {"n_steps": 36} if plays else {"dataset": games, "batch_size": 8}
    env = dialgym.sb3_vec_env(ID, 8, seed=0)
    model = algorithm(
        "GPTPolicy", env, policy_kwargs=SMALL, learning_rate=0.01, seed=0, **given, **settings
    )
    before = {name: p.detach().clone() for name, p in model.policy.backbone.named_parameters()}
    model.learn(1)
    moved = {
        name
        for name, p in model.policy.backbone.named_parameters()
        if not torch.equal(p, before[name])
    }
    assert moved
    assert all("lora_" in name for name in moved)
