"""Settings and policies that an offline learner refuses, each with one clear error."""

import pytest

import agents
import dialgym
from agents import (
    BC,
    CHAI,
    ILQL,
    MLE,
    QSFT,
    DecisionTransformer,
    PsiLearning,
    SingleStepRL,
    UtteranceILQL,
)
from tests.support.word_games import learner

SETTINGS = [
    (BC, {"batch_size": 0}, "expected batch_size to be a whole number from 1; got 0"),
    (CHAI, {"clone_steps": -1}, "CHAI: expected clone_steps to be a whole number from 0; got -1"),
    (CHAI, {"samples": 0}, "CHAI: expected samples to be a whole number from 1; got 0"),
    (CHAI, {"random_samples": -1}, "CHAI: expected random_samples to be a whole number from 0; g"),
    (ILQL, {"expectile": 1.0}, "ILQL: expectile must be between 0 and 1, got 1.0"),
    (ILQL, {"tau": 0.0}, "ILQL: tau must be above 0 and at most 1"),
    (ILQL, {"cql_temperature": 0.0}, "ILQL: expected cql_temperature to be a number above 0"),
    (ILQL, {"gamma": 1.5}, "ILQL: expected gamma to be a number from 0 to 1; got 1.5"),
    (ILQL, {"target_update_interval": 0}, "expected target_update_interval to be a whole number"),
    (ILQL, {"losses": {"dm_wait": 1.0}}, "unknown setting 'dm_wait' in losses. Did you mean 'dm_w"),
    (ILQL, {"losses": {"dm_weight": -1.0}}, "losses: expected dm_weight to be a number from 0; g"),
    (ILQL, {"losses": {"detach": ["pi"]}}, "detach of losses must be one of 'policy', 'q', 'v'; "),
    (ILQL, {"losses": {"awac_weights": "sgn"}}, "awac_weights of losses must be one of 'exp', 's"),
    (ILQL, {"losses": {"awac_weights": "sign"}}, "awac_beta to be a number above 0 to 1; got 0.0"),
    (MLE, {"pos_weight": 0}, "MLE: expected pos_weight to be a number above 0"),
    (PsiLearning, {"reward_scale": 0.0}, "expected reward_scale to be a number above 0"),
    (QSFT, {"losses": {"mc_weight": 0.5}}, "'mc_weight'; of losses it reads detach alone. Leave i"),
    (QSFT, {"losses": {"detach": ["v"]}}, "detach of losses of QSFT must be one of 'policy', 'q'"),
    (QSFT, {"value_range": (-5,)}, r"expected value_range=\(LEAST, GREATEST\), got \(-5,\)"),
    (QSFT, {"value_range": (float("nan"), 1)}, "value_range of QSFT must be a finite number"),
    (SingleStepRL, {"returns": "td"}, "returns of SingleStepRL must be one of"),
    (UtteranceILQL, {"expectile": 0.0}, "UtteranceILQL: expectile must be between 0 and 1, got 0"),
    (UtteranceILQL, {"losses": {"dm_weight": 1.0}}, "unexpected keyword argument 'losses'"),
    (UtteranceILQL, {"tau": 0.0}, "UtteranceILQL: tau must be above 0 and at most 1"),
]
POLICIES = [
    (CHAI, {"share_features_extractor": False}, "values read the frozen language model"),
    (ILQL, {"value_min": 1.0, "value_max": 0.0}, "expected a number below value_max, 0, got 1"),
    (ILQL, {"q_head": "agents.models.heads.Head"}, "q_head: expected a dotted name such as"),
    (ILQL, {"q_head": "agents.models.heads.ValueHead"}, "q_head .*and the number of actions"),
    (ILQL, {"decoding": {"weights": "sign"}}, "beta must be from 0 to 1, 1 left out"),
    (QSFT, {"decoding": {"advantage_clip": 1.0}}, "ask for advantages, and there are none"),
    (QSFT, {"decoding": {"beta": 0.5, "weights": "sign"}}, "ask for advantages, and there are"),
    (
        ILQL,
        {"decoding": {"top_k": 2.5}},
        "top_k of decoding must be a whole number from 1; got 2.5",
    ),
    (ILQL, {"decoding": {"beta": "4"}}, "beta of decoding must be a finite number; got '4'"),
    (ILQL, {"decoding": {"advantage_clip": "x"}}, "advantage_clip of decoding must be a finite nu"),
    (UtteranceILQL, {"decoding": {"candidates": 0}}, "candidates of decoding must be a whole numb"),
    (UtteranceILQL, {"decoding": {"max_tokens": 0}}, "max_tokens of decoding must be a whole numb"),
    (UtteranceILQL, {"decoding": {"log_prob_weight": float("nan")}}, "log_prob_weight of decoding"),
    (UtteranceILQL, {"decoding": {"beta": 1.0}}, "beta and advantage_clip are for advantages of"),
]
CLASSES = [
    (DecisionTransformer, "GPTPolicy", r"expected agents.ReturnGPTPolicy, which is told"),
    (ILQL, "GPTPolicy", r"expected agents.ValueGPTPolicy or agents.ValueBelief"),
    (UtteranceILQL, "ValueGPTPolicy", r"expected agents.UtteranceGPTPolicy, which speaks"),
]


def named(value):
    return value.__name__ if isinstance(value, type) else None


@pytest.mark.parametrize(("algorithm", "settings", "message"), SETTINGS, ids=named)
def test_settings(algorithm, settings, message, games):
    with pytest.raises(ValueError, match=message):
        learner(algorithm, games, **settings)


@pytest.mark.parametrize(("algorithm", "detach"), [(ILQL, ["q", "v"]), (QSFT, ["q"])])
def test_values_with_a_trunk_that_nothing_teaches(algorithm, detach, games):
    apart = {"share_features_extractor": False}
    with pytest.raises(ValueError, match=r"of the values' own as it was drawn; leave detach out"):
        learner(algorithm, games, apart, losses={"detach": detach})
    acts = dialgym.sb3_vec_env("dialgym/TwentyQuestions-8-act-v0", 1)
    with pytest.raises(ValueError, match=r"of the values' own as it was drawn"):
        algorithm("MlpPolicy", acts, losses={"detach": detach})
    algorithm("MlpPolicy", acts, losses={"detach": detach}, policy_kwargs={"net_arch": []})
    for policy, losses in (({}, {"detach": detach}), (apart, {"detach": ["policy"]})):
        learner(algorithm, games, policy, losses=losses)


@pytest.mark.parametrize(("algorithm", "policy", "message"), POLICIES, ids=named)
def test_settings_of_the_policy(algorithm, policy, message, games):
    with pytest.raises(ValueError, match=message):
        learner(algorithm, games, policy)


@pytest.mark.parametrize(("algorithm", "policy", "message"), CLASSES, ids=named)
def test_other_classes_of_policies(algorithm, policy, message, games):
    with pytest.raises(ValueError, match=message):
        algorithm(getattr(agents, policy), learner(BC).env, games)
