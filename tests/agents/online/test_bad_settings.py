"""Settings that a learner by playing refuses, each with one clear error."""

import math

import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import VecNormalize

from agents import GRPO, NLPO, ExpertIteration, SequencePPO
from agents.online.groups import GroupAlgorithm
from tests.support.toy_tokens import Echo

SETTINGS = [
    (SequencePPO, {"policy": ActorCriticPolicy}, "expected a GPT policy"),
    (SequencePPO, {"advantage_level": "turns"}, "advantage_level of SequencePPO must be one of"),
    (SequencePPO, {"truncation": "end"}, "truncation of SequencePPO must be one of 'bootstrap'"),
    (SequencePPO, {"compute": {"autocast": "fp8"}}, "autocast of compute must be one of None, 'bf"),
    (SequencePPO, {"batch_size": 0}, "expected batch_size to be a whole number from 1; got 0"),
    (GRPO, {"group_size": 3}, "divide the number of dialogues, got 3 and 2"),
    (GRPO, {"group_size": None, "resample": 2}, "resample=2 plays groups again, got group_size=No"),
    (GRPO, {"resample": -1}, "resample of GRPO must be a whole number from 0; got -1"),
    (GRPO, {"credit": "other"}, "credit.*GRPO"),
    (GRPO, {"loss_type": "gspo"}, "loss_type of GRPO must be one of 'grpo', 'dr_grpo', 'dapo'"),
    (GRPO, {"importance_sampling_level": "turn"}, "importance_sampling_level.*GRPO"),
    (GRPO, {"scale_rewards": "all"}, "scale_rewards of GRPO must be one of 'group', 'batch', 'n"),
    (GRPO, {"credit": "exact", "gamma": 0.9}, "credit='exact' is of undiscounted values, got gam"),
    (GRPO, {"credit": "turn", "credit_kwargs": {"weight": 1}}, "unknown setting 'weight' in cred"),
    (
        GRPO,
        {"credit": "privileged", "credit_kwargs": {"trace": 2}},
        "expected trace to be a number fr",
    ),
    (GRPO, {"credit": "prefix", "credit_kwargs": {"count": 0}}, "expected count to be a whole num"),
    (GRPO, {"baseline": "other"}, "baseline.*GRPO"),
    (
        GRPO,
        {"group_size": None, "env": make_vec_env(Echo, 1)},
        "compares dialogues, got an env of 1 dialogue",
    ),
    (SequencePPO, {"env": VecNormalize(make_vec_env(Echo, 2))}, "give VecNormalize norm_obs=False"),
    (ExpertIteration, {"top": 0}, "expected top to be a number above 0 to 1; got 0"),
    (NLPO, {"top_p": 0}, "expected top_p to be a number above 0 to 1; got 0"),
    (NLPO, {"top_p": "most"}, "expected top_p to be a number above 0 to 1; got 'most'"),
    (NLPO, {"min_tokens": 2.5}, r"expected min_tokens to be a whole number from 1; got 2\.5"),
    (NLPO, {"mask_every": 0}, "expected mask_every to be a whole number from 1; got 0"),
    (SequencePPO, {"kl": {"coef": -0.1}}, "coef of at least 0 and a target above 0"),
    (SequencePPO, {"kl": {"coef": 0.1, "target": 0.0}}, "coef of at least 0 and a target above 0"),
    (
        SequencePPO,
        {"kl": {"coef": 1.0, "target": 0.1, "horizon": 0}},
        r"a horizon of at least 1 token .* got 0.2 and 0",
    ),
    (SequencePPO, {"kl": {"coef": math.nan}}, "coef must be a finite number; got nan"),
    (
        SequencePPO,
        {"kl": {"coef": 1.0, "target": "0.1"}},
        r"target must be a finite number; got '0",
    ),
    (
        SequencePPO,
        {"kl": {"coef": 1.0, "target": 0.1, "clip": 0}},
        r"a clip above 0 .* got 0 and None",
    ),
    (
        SequencePPO,
        {"kl": {"targte": 0.1}},
        r"unknown setting 'targte' in kl. Did you mean 'target'",
    ),
]


@pytest.mark.parametrize(
    ("algorithm", "settings", "message"), SETTINGS, ids=lambda x: getattr(x, "__name__", None)
)
def test_settings(algorithm, settings, message):
    own = {"group_size": 2} if issubclass(algorithm, GroupAlgorithm) else {}
    with pytest.raises(ValueError, match=message):
        algorithm(**{"policy": "GPTPolicy", "env": make_vec_env(Echo, 2), **own, **settings})
