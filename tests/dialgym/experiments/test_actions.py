"""Policies that learn by drawing are scored as they learned, and beside that greedily."""

import numpy as np
import pytest

import dialgym
from dialgym.experiments import Result, benchmark
from dialgym.rollouts.policies import learns_by_sampling
from tests.support.commands import fail, succeed

ID = "dialgym/TwentyQuestions-8-act-v0"


class Asks:
    """Asks the first question for ever, or where it draws anything, guesses too."""

    learns_by_sampling = True

    def set_random_seed(self, seed):
        self.rng = np.random.default_rng(seed)

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        actions = np.zeros(len(observation), np.int64)
        return (actions if deterministic else self.rng.integers(16, size=len(actions))), state


class Answers(Asks):
    """Learns values, say."""

    learns_by_sampling = False


def test_the_default_is_how_a_policy_learned():
    drawn, greedy = (dialgym.evaluate(Asks(), ID, 40, deterministic=d) for d in (False, True))
    assert drawn.mean_return > greedy.mean_return == -8.0
    found = dialgym.evaluate(Asks(), ID, 40)
    assert (found[ID].returns == drawn[ID].returns).all()
    assert [r.name for r in (found, drawn, greedy)] == ["Asks (drawn)"] * 2 + ["Asks (greedy)"]
    other = dialgym.evaluate(Answers(), ID, 40)
    assert (other.mean_return, other.name, other.actions) == (-8.0, "Answers", "")


def test_a_benchmark_has_both_ways():
    found = benchmark({"ours": Asks(), "values": Answers(), "random": "random"}, [ID], 20, games=1)
    names = ["ours (drawn)", "ours (greedy)", "values", "random"]
    assert [result.name for result in found.results] == names
    assert [game.policy for game in found.games] == names
    assert found.results[1].mean_return == -8.0 == found.games[1].episode_return
    assert "Drawn, greedy:" in found.results[0].to_markdown()
    assert "Drawn, greedy:" not in found.results[3].to_markdown()


def test_results_remember_it(tmp_path):
    found = dialgym.evaluate(Asks(), ID, 5)
    found.to_json(tmp_path / "a.json")
    assert Result.from_json(tmp_path / "a.json").name == "Asks (drawn)"


def test_on_policy_algorithms_and_actor_critics_draw():
    sb3, agents = pytest.importorskip("stable_baselines3"), pytest.importorskip("agents")
    pool = dialgym.sb3_vec_env(ID, 2, seed=0)
    draw, take_the_best = (sb3.PPO, sb3.A2C, agents.ACER, agents.GPSarsa), (sb3.DQN, agents.DQN)
    for algorithm in (*draw, *take_the_best):
        policy = "GPPolicy" if algorithm is agents.GPSarsa else "MlpPolicy"
        assert learns_by_sampling(algorithm(policy, pool, seed=0)) == (algorithm in draw), algorithm


def test_the_command_line_shows_both(tmp_path, monkeypatch):
    sb3, agents = pytest.importorskip("stable_baselines3"), pytest.importorskip("agents")
    monkeypatch.chdir(tmp_path)
    model = sb3.PPO("MlpPolicy", dialgym.sb3_vec_env(ID, 2, seed=0), n_steps=8, seed=0)
    agents.save(model, tmp_path / "ppo.zip")
    both = succeed("evaluate", "ppo.zip", ID, "-n", "5")
    assert both.index("(drawn)") < both.index("(greedy)")
    assert "(greedy)" not in succeed("evaluate", "ppo.zip", ID, "-n", "5", "--actions", "drawn")
    assert "(drawn)" not in succeed("evaluate", "ppo.zip", ID, "-n", "5", "--actions", "greedy")
    refused = fail("evaluate", "ppo.zip", ID, "--actions", "both")
    assert "must be one of 'drawn', 'greedy'; got 'both'" in refused
