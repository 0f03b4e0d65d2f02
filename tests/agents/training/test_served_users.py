"""Training against a language model behind a service: it goes on after a budget is spent."""

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("httpx", reason="the extra lm")
import agents
from agents.training.checkpoint import FILE
from dialgym.io.model_settings import BudgetSpentError
from tests.support.chat_server import chat_server
from tests.support.commands import run
from tests.support.resuming import assert_same_model

ENV = "SlotFilling-act-v0"
TINY = {"n_steps": 8, "batch_size": 128, "n_epochs": 1}


def talks(body):
    foods = ("chinese", "italian", "indian", "french")
    return f"i want {foods[body['seed'] % 4]} food"


def train(folder, user, **more):
    return agents.train(
        ENV,
        "maskable-ppo",
        total_timesteps=2048,
        n_envs=16,
        env_kwargs={"language": "english", "simulator": {"lm": user}},
        hyperparameters=TINY,
        log_dir=folder,
        checkpoint_every=1,
        progress_bar=False,
        device="cpu",
        **more,
    )


@pytest.mark.slow
def test_training_goes_on_after_a_budget_as_if_it_had_been_larger(tmp_path):
    with chat_server(talks) as server:
        user = {"model": "stub", "base_url": server.url}
        whole = train(tmp_path / "whole", user)
        bounded = {**user, "budget": {"requests": len(server.bodies) * 2 // 3}}
        with pytest.raises(BudgetSpentError, match="requests are spent"):
            train(tmp_path / "cut", bounded)
        assert (tmp_path / "cut" / FILE).exists()
        assert_same_model(whole, train(tmp_path / "cut", bounded, resume=True))


def test_the_command_tells_the_way_on(tmp_path):
    with chat_server(talks) as server:
        user = f"{{model: stub, base_url: '{server.url}', budget: {{requests: 40}}}}"
        folder = ("--out", str(tmp_path / "run"), "-s", f"simulator={{lm: {user}}}")
        ended = run("train", "maskable-ppo", ENV, "--timesteps", "400", *folder, "-p", "n_steps=8")
    assert ended.exit_code == 2
    assert "40 of 40 requests are spent" in ended.stderr
    assert "Go on with: dialgym train --resume" in ended.stderr
