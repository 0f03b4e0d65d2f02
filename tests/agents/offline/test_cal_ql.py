"""Cal-QL learns what CQL learns, and its values are seldom below what the data earned."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.evaluation import evaluate_policy

import agents
from agents import CQL
from tests.support.toy_dialogues import dialogues, echo
from tests.support.word_games import learner


@pytest.mark.slow
def test_values_keep_the_scale_of_returns_and_tell_good_from_bad():
    data, below = dialogues(400), {}
    kwargs = {"n_layer": 1, "n_head": 2, "n_embd": 32, "decoding": {"beta": 8.0}}
    settings = {"learning_rate": 3e-3, "batch_size": 32, "tau": 0.1, "cql_weight": 1.0, "seed": 0}
    for calibrated in (False, True):
        model = CQL(
            "GPTPolicy", echo(), data, calibrated=calibrated, policy_kwargs=kwargs, **settings
        ).learn(200)
        batch = model.batch(data.batch(np.arange(200), trim=True))
        with torch.no_grad():
            _, hidden, _ = model.policy.hidden_states(batch.observations, batch.at)
            q = model.policy.q_values(hidden).amin(0).masked_fill(~batch.allowed, -torch.inf)
        below[calibrated] = (q.amax(1) < batch.returns - 0.3).float().mean().item()
        assert evaluate_policy(model, echo(rows=50), 100)[0] > 1.8  # of 2
    assert below[True] < 0.03 < 0.08 < below[False]


def test_the_setting_is_kept_and_is_one_of_cql_alone(games, tmp_path):
    model = learner(CQL, games, calibrated=True).learn(1)
    model.save(tmp_path / "model")
    assert agents.load(tmp_path / "model.zip").calibrated
    batch = model.batch(games.tokens().batch([0], trim=True))
    assert torch.equal(model.cql_floor(batch), batch.returns)
    assert learner(CQL).cql_floor(batch) is None
    with pytest.raises(TypeError, match="calibrated"):
        learner(agents.ILQL, calibrated=True)
