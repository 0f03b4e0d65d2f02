"""Imported dialogues with ratings: ILQL says what was rated well, a clone what was said often."""

import pytest

import dialgym
from agents import BC, ILQL, ChatAgent

KIND, CURT = "I am sorry. We send a new one.", "Did you drop it?"
BEFORE, ASKED = ["Hello?", "How can I help you?"], "My lamp came broken."


def share_of_kind_answers(algorithm, dataset, **settings):
    env_id, kwargs = dataset.environment()
    env = dialgym.sb3_vec_env(env_id, 1, **kwargs)
    model = algorithm(
        "GPTPolicy",
        env,
        dataset,
        batch_size=16,
        learning_rate=2e-3,
        device="cpu",
        seed=0,
        **settings,
    )
    model.learn(1000)
    agent = ChatAgent.load(model)
    said = [agent.chat(ASKED, BEFORE, seed=seed) for seed in range(30)]
    return sum(text == KIND for text in said) / len(said)


@pytest.mark.slow
def test_what_was_rated_well_is_said(tmp_path):
    rows = [
        {"turns": [*BEFORE, ASKED, answer], "rating": rating}
        for answer, rating in [(KIND, 5), (CURT, 1), (CURT, 1)] * 20
    ]
    dataset = dialgym.Dataset.from_dialogues(rows, tmp_path / "data")
    settings = {"expectile": 0.8, "cql_weight": 0.05, "tau": 0.1, "gamma": 0.99}
    assert share_of_kind_answers(ILQL, dataset, **settings) > 0.9
    assert share_of_kind_answers(BC, dataset) < 0.7
