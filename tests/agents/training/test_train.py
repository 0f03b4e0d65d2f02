"""Training by configuration: what is read, what is refused, what is left behind."""

import csv
import threading

import numpy as np
import pytest
import torch
from stable_baselines3.common.logger import Logger

import agents
import dialgym
from agents import BC, GRPO, GPTPolicy, SequencePPO, SingleStepRL, TrainConfig, train
from agents.registry import ALGORITHMS
from agents.training.hyperparameters import constructor_arguments, read_hyperparameters
from agents.training.run import run_training, torch_threads
from agents.training.session import build
from dialgym.language.tokenizers import END
from tests.support.by_day import by_day
from tests.support.close import assert_close
from tests.support.commands import fail, succeed
from tests.support.resuming import assert_comes_back

ID = "dialgym/Wordle-20-v0"
SHORT = {
    "n_steps": 36,
    "batch_size": 288,
    "n_epochs": 1,
    "policy_kwargs": {"n_layer": 1, "n_embd": 16},
}
ARGUMENTS = {"total_timesteps": 300, "n_envs": 8, "hyperparameters": SHORT, "progress_bar": False}


def small(config):
    smaller = {"n_layer": 1, "n_head": 1, "n_embd": 16}
    return {**config, "policy_kwargs": {**config["policy_kwargs"], **smaller}}


SEVERAL_ACTS = "tests.support.toy_acts:Wishes-act"
SLOTS = "dialgym/SlotFilling-act-v0"
DOMAINS = "dialgym/SlotFilling-Domains-act-v0"
OURS = [name for name, row in ALGORITHMS.items() if row.home.startswith("agents.")]


@pytest.mark.parametrize("algo", OURS)
@pytest.mark.filterwarnings("ignore:.*learned within masks")
def test_built_in_hyperparameters_are_known_for_every_algorithm(algo, tmp_path):
    """Each makes a model, which is saved and comes back."""
    acts = "acts" in ALGORITHMS[algo].kind
    config = read_hyperparameters(algo, ID)
    assert {"n_timesteps", "policy"} <= config.keys()
    assert ("n_envs" in config) == ALGORITHMS[algo].plays
    one_act = ALGORITHMS[algo].home.startswith("agents.acts.")
    env_id = (SLOTS if one_act else SEVERAL_ACTS) if acts else ID
    several_domains = algo == "policy-manager"  # which plays one dialogue of them at a time
    env = dialgym.sb3_vec_env(DOMAINS if several_domains else env_id, 1 if several_domains else 16)
    model = build(algo, config if acts else small(config), env)
    name = type(model.policy).__name__
    assert config["policy"] in ("MlpPolicy", "GPPolicy", "ManagerPolicy", f"agents.{name}")
    assert read_hyperparameters(algo, "dialgym/Wordle-v0").keys() <= config.keys()
    assert_comes_back(model, tmp_path / "model.zip")


@pytest.mark.parametrize("algo", sorted(ALGORITHMS.keys() - OURS))
@pytest.mark.parametrize("env_id", [ID, "dialgym/SlotFilling-act-v0"])
def test_stock_algorithms_are_made_for_token_and_act_views(algo, env_id, tmp_path):
    kind = "acts" if "act" in env_id else "tokens"
    config = read_hyperparameters(algo, env_id, {"n_envs": 2}, kind=kind)
    model = build(algo, config, dialgym.sb3_vec_env(env_id, 2, seed=0))
    assert type(model) is ALGORITHMS[algo].load()
    assert model.policy.predict(model.env.reset())[0].shape == (2,)
    assert_comes_back(model, tmp_path / "model.zip")


def test_overrides_are_merged_and_names_resolved(tmp_path):
    file = tmp_path / "mine.yml"
    file.write_text(
        "default: {policy: agents.GPTPolicy, policy_kwargs: {preset: nano}, gamma: 0.9}\n"
        f"{ID}: {{gamma: 1, learning_rate: lin_0.01, n_envs: 3}}\n"
    )
    config = read_hyperparameters("ppo", ID, {"policy_kwargs": {"n_layer": 3}}, file)
    assert config["gamma"] == 1
    assert config["policy_kwargs"] == {"preset": "nano", "n_layer": 3}
    arguments = constructor_arguments(config)
    assert arguments["policy"] is GPTPolicy
    assert arguments["learning_rate"](0.5) == 0.005
    assert "n_envs" not in arguments


def test_bad_hyperparameters_are_explained(tmp_path):
    with pytest.raises(ValueError, match="Did you mean 'n_epochs'"):
        read_hyperparameters("ppo", ID, {"n_epoch": 3})
    with pytest.raises(ValueError, match=r"unknown algorithm 'pp0'. Did you mean 'ppo'"):
        read_hyperparameters("pp0", ID)
    for key in ("n_steps", "gamma", "n_timesteps", "vf_coef"):
        with pytest.raises(ValueError, match=f"{key} of ppo on .*: expected a number, got 'abc'"):
            read_hyperparameters("ppo", ID, {key: "abc"})
    with pytest.raises(ValueError, match=r"ent_coef of maskable-ppo .*: expected a number, got 'l"):
        read_hyperparameters("maskable-ppo", ID, {"ent_coef": "lin_0.02"})  # one number, says SB3
    assert read_hyperparameters("ppo", ID, {"ent_coef": "lin_0.02"})["ent_coef"] == "lin_0.02"
    assert constructor_arguments({"learning_rate": "1e-4"})["learning_rate"] == 1e-4
    with pytest.raises(ValueError, match=r"learning_rate: expected a number or 'lin_<number>'"):
        constructor_arguments({"learning_rate": "cos_1"})
    with pytest.raises(ValueError, match=r"policy: expected a dotted name .* got 'agents.GPT'"):
        constructor_arguments({"policy": "agents.GPT"})
    with pytest.raises(ValueError, match=r"unknown key 'preset:mini' in policy_kwargs .*'preset'"):
        read_hyperparameters("ppo", ID, {"policy_kwargs": {"preset:mini": None}})
    pretrained = read_hyperparameters("ppo", ID, {"policy_kwargs": {"pretrained": "gpt2"}})
    assert pretrained["policy_kwargs"] == {"pretrained": "gpt2"}  # without our own sizes
    empty = tmp_path / "empty.yml"
    empty.write_text("other: {}\n")
    with pytest.raises(ValueError, match="expected a row 'dialgym/Wordle-20-v0' or 'default'"):
        read_hyperparameters("ppo", ID, path=empty)
    with pytest.raises(ValueError, match="unknown environment id"):
        train("dialgym/Wordl-v0", "ppo")


@pytest.mark.parametrize(
    ("algo", "algorithm", "more"), [("ppo", SequencePPO, {}), ("grpo", GRPO, {"group_size": 4})]
)
def test_training_leaves_a_model_a_curve_and_logs(algo, algorithm, more, tmp_path):
    arguments = {**ARGUMENTS, "hyperparameters": {**SHORT, **more}}
    arguments |= {"total_timesteps": 600, "eval_freq": 300, "eval_episodes": 8, "save_freq": 300}
    threads = {*threading.enumerate()}
    model = train("Wordle-20-v0", algo, log_dir=tmp_path, **arguments)
    assert {*threading.enumerate()} <= threads
    assert isinstance(model, algorithm)
    assert model.num_timesteps >= 600
    with (tmp_path / "learning_curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["timesteps", "seconds", "episodes", "mean_return", "success"]
    if algo == "ppo":  # whose rollouts are of one length
        assert [int(row["timesteps"]) for row in rows] == [288, 576, 864]
    assert all(-6 <= float(row["mean_return"]) <= 0 for row in rows)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"model.zip", "config.yml", "checkpoints", "tensorboard"} <= names
    assert {"best_model.zip", "evaluations.npz", "samples"} <= names
    assert not [name for name in names if ".tmp" in name]
    assert list((tmp_path / "tensorboard").iterdir())
    obs = dialgym.sb3_vec_env(ID, 5, seed=1).reset()
    again = algorithm.load(tmp_path / "model.zip").predict(obs, deterministic=True)[0]
    assert again.tolist() == model.predict(obs, deterministic=True)[0].tolist()


def test_the_file_of_a_run_repeats_it(tmp_path):
    model = train("Wordle-20-v0", log_dir=tmp_path / "first", log_interval=2, **ARGUMENTS)
    file = tmp_path / "first" / "config.yml"
    config = TrainConfig.from_yaml(file, log_dir=tmp_path / "second", progress_bar=False)
    again = run_training(config)
    assert config.log_interval == 2
    assert (tmp_path / "second" / "config.yml").read_bytes() == file.read_bytes()
    first, second = (one.policy.state_dict().values() for one in (model, again))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(("interval", "lines"), by_day([(None, 3), (2, 1)], (2, 1)))
def test_the_log_has_a_line_every_so_many_rollouts(interval, lines, tmp_path, monkeypatch):
    dumped = []
    monkeypatch.setattr(Logger, "dump", lambda self, step=0: dumped.append(step))
    arguments = {**ARGUMENTS, "total_timesteps": 600}
    train("Wordle-20-v0", log_dir=tmp_path, log_interval=interval, **arguments)
    assert len(dumped) == lines


def test_a_seed_gives_one_curve_and_workers_change_nothing(tmp_path):
    weights = [
        train(
            log_dir=tmp_path / str(run), seed=seed, workers=workers, **ARGUMENTS
        ).policy.parameters_to_vector()
        for run, (seed, workers) in enumerate([(3, 0), (3, 0), (3, 2), (4, 0)])
    ]
    np.testing.assert_array_equal(weights[0], weights[1])
    assert_close(weights[0], weights[2], rtol=1e-5)
    assert not np.allclose(weights[0], weights[3])


def test_a_run_logs_returns_and_success(tmp_path, monkeypatch):
    seen = set()
    monkeypatch.setattr(
        "stable_baselines3.common.logger.TensorBoardOutputFormat.write",
        lambda self, values, excluded, step=0: seen.update(values),
    )
    train(log_dir=tmp_path, **ARGUMENTS)
    assert {"rollout/ep_rew_mean", "rollout/success_rate", "train/loss"} <= seen


def test_the_command_line_hands_over_evaluation_and_logging(monkeypatch, tmp_path):
    taken = []
    monkeypatch.setattr(agents, "run_training", taken.append)
    options = ["--eval-freq", "300", "--eval-episodes", "8", "--samples", "0"]
    succeed("train", "ppo", ID, *options, "--save-freq", "600", "--wandb")
    succeed("train", "ppo", ID)
    names = ("eval_freq", "eval_episodes", "samples", "save_freq", "wandb")
    assert [[getattr(config, name) for name in names] for config in taken] == [
        [300, 8, 0, 600, True],
        [0, 200, None, 0, False],
    ]


def test_threads_are_put_back():
    before = torch.get_num_threads()
    with torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_training_begins_with_the_weights_of_a_saved_model(tmp_path):
    games = dialgym.collect(ID, "random", 8, seed=0)
    kwargs = {**SHORT["policy_kwargs"], "n_head": 4}  # as the configuration of `train` says
    cloned = BC("GPTPolicy", dialgym.sb3_vec_env(ID, 1), games, policy_kwargs=kwargs, seed=5)
    cloned.save(tmp_path / "cloned.zip")
    still = {**SHORT, "learning_rate": 0.0}
    start = {"init_from": tmp_path / "cloned.zip", "log_dir": tmp_path / "run"}
    model = train(**{**ARGUMENTS, "hyperparameters": still}, **start)
    for a, b in zip(model.policy.parameters(), cloned.policy.parameters(), strict=True):
        assert torch.equal(a, b)
    wide = {**SHORT, "policy_kwargs": {"n_layer": 1, "n_embd": 32}}
    with pytest.raises(ValueError, match=r"expected backbone.wte.weight of shape \(32, 32\), got"):
        train(**{**ARGUMENTS, "hyperparameters": wide}, **{**start, "log_dir": tmp_path / "wide"})


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    folder = tmp_path_factory.mktemp("games")
    dialgym.collect(ID, "random-mixture", 40, path=folder, env_kwargs={"tokenizer": "word"})
    return folder


OFFLINE_ARGUMENTS = {"total_timesteps": 8, "progress_bar": False}
TINY = {"batch_size": 8, "log_interval": 4, "policy_kwargs": {"n_layer": 1, "n_embd": 16}}


@pytest.mark.parametrize(
    ("algo", "algorithm", "more"),
    [("bc", BC, {"top": 0.5}), ("single-step", SingleStepRL, {"returns": "monte-carlo"})],
)
def test_stored_dialogues_train_in_the_env_that_they_were_held_in(
    algo, algorithm, more, games, tmp_path
):
    arguments = {
        **OFFLINE_ARGUMENTS,
        "hyperparameters": {**TINY, **more},
        "eval_freq": 4,
        "samples": 1,
    }
    model = train("Wordle-20-v0", algo, log_dir=tmp_path, data=games, eval_episodes=4, **arguments)
    assert isinstance(model, algorithm)
    assert model.num_timesteps == 8
    assert len(model.data) == (20 if "top" in more else 40)
    worded = dialgym.sb3_vec_env(ID, 2, tokenizer="word")
    assert model.observation_space == worded.observation_space
    with (tmp_path / "learning_curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["timesteps"] for row in rows] == ["4", "8"]
    assert all(float(row["loss"]) > 0 for row in rows)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"model.zip", "config.yml", "tensorboard", "best_model.zip", "samples"} <= names
    obs = worded.reset()
    again = algorithm.load(tmp_path / "model.zip").predict(obs, deterministic=True)[0]
    assert again.tolist() == model.predict(obs, deterministic=True)[0].tolist()


def test_several_sets_of_dialogues_are_read_as_one(games, tmp_path):
    both = [games, dialgym.load_dataset(games).top(0.25)]
    model = train(ID, "bc", log_dir=tmp_path, data=both, hyperparameters=TINY, **OFFLINE_ARGUMENTS)
    assert len(model.data) == 50


def test_the_dialogues_to_learn_from_are_chosen_by_their_returns(games, tmp_path):
    stored = dialgym.load_dataset(games)
    chosen = {"at_least": -4, "top": 0.8, "bottom": 0.5}
    model = train(
        ID,
        "bc",
        log_dir=tmp_path,
        data=games,
        hyperparameters={**TINY, **chosen},
        **OFFLINE_ARGUMENTS,
    )
    expected = stored.at_least(-4).top(0.8).bottom(0.5).tokens()
    assert 0 < len(model.data) < len(stored)
    np.testing.assert_array_equal(model.data.tokens, expected.tokens)
    for wrong, message in {
        "at_least=3": "expected dialogues with a return of 3 or more",
        "bottom=2": "bottom: share must be above 0",
        "at_least=much": "at_least of bc on dialgym/Wordle-20-v0: expected a number, got 'much'",
        "both_parties=3": f"both_parties of bc on {ID}: expected true or false, got 3",
    }.items():
        assert message in fail("train", "bc", ID, "-d", str(games), "-p", wrong)


def test_rewards_of_tokens_are_added_to_stored_dialogues(games, tmp_path):
    extra = {"constant": -0.25, "by_token": {"<end>": 1.0}}
    kwargs = {"data": games, "hyperparameters": {**TINY, "token_reward": extra}}
    model = train(ID, "ilql", log_dir=tmp_path / "a", **kwargs, **OFFLINE_ARGUMENTS)
    own = dialgym.load_dataset(games).tokens()
    said = own.is_action
    expected = own.reward + (-0.25 * said + (said & (own.tokens == END))).astype(np.float32)
    np.testing.assert_array_equal(model.data.reward, expected)
    config = TrainConfig.from_yaml(
        tmp_path / "a" / "config.yml", log_dir=tmp_path / "b", data=games
    )
    again = run_training(config)
    for a, b in zip(model.policy.parameters(), again.policy.parameters(), strict=True):
        assert torch.equal(a, b)
    loaded = agents.load(tmp_path / "a" / "model.zip", dataset=games, env=model.env)
    np.testing.assert_array_equal(loaded.data.reward, expected)
    for wrong, message in {
        "1": "token_reward: expected a mapping such as",
        "{constants: 1}": "unknown setting 'constants' in token_reward",
        "{by_token: {7: 1}}": "expected by_token by the tokens' texts, such as '<end>', got {7: 1}",
    }.items():
        command = ("train", "bc", ID, "-d", str(games), "--out", str(tmp_path / "wrong"))
        assert message in fail(*command, "-p", f"token_reward={wrong}")


def rows_of(folder):
    """The learning curve, without the seconds."""
    with (folder / "learning_curve.csv").open() as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


@pytest.mark.parametrize("algo", by_day(["bc", "ilql"], "bc"))
def test_the_loss_of_held_out_dialogues_is_measured_while_training(algo, games, tmp_path):
    own = {**TINY, "learning_rate": 0.03, "held_out": 0.3}
    kwargs = {"data": games, "hyperparameters": own, "progress_bar": False}
    model = train(ID, algo, log_dir=tmp_path / "a", total_timesteps=8, **kwargs)
    held, rest = dialgym.load_dataset(games).split(0.3)
    assert len(model.data) == len(rest) < 40
    rows = rows_of(tmp_path / "a")
    found = [float(row["held_out/loss"]) for row in rows]
    assert len(found) == 2
    measured = model.mean_losses(model.stored(held))
    assert {f"held_out/{name}" for name in measured} <= rows[1].keys()
    assert found[1] == pytest.approx(measured["loss"], rel=1e-5)
    best = agents.load(tmp_path / "a" / "best_model.zip", env=model.env)
    assert best.mean_losses(best.stored(held))["loss"] == pytest.approx(min(found), rel=1e-5)

    train(ID, algo, log_dir=tmp_path / "b", total_timesteps=4, **kwargs)
    train(ID, algo, log_dir=tmp_path / "b", total_timesteps=8, resume=True, **kwargs)
    assert rows_of(tmp_path / "b") == rows
    for wrong, message in {
        "1.5": "held_out: expected a share between 0 and 1, got 1.5",
        "0.9999999": "got 40 and 0; collect more, or give another share than 0.9999999",
    }.items():
        assert message in fail("train", algo, ID, "-d", str(games), "-p", f"held_out={wrong}")


def test_dialogues_where_none_or_others_are_wanted_are_one_clear_error(games, tmp_path):
    assert "data: ilql learns from stored dialogues, got none" in fail("train", "ilql", ID)
    assert "data: ppo learns by playing" in fail("train", "ppo", ID, "--data", str(games))
    other = fail("train", "bc", "Wordle-200-v0", "-d", str(games))
    assert "expected dialogues of dialgym/Wordle-200-v0, got some of dialgym/Wordle-20" in other
    played = fail("train", "bc", ID, "-d", str(games), "--workers", "2")
    assert "workers: bc does not play" in played
    assert "unknown hyperparameter 'n_envs' in hyperparameters of bc" in fail(
        "train", "bc", ID, "-d", str(games), "--n-envs", "2"
    )
    assert "unknown hyperparameter 'topp'" in fail(
        "train", "bc", ID, "-d", str(games), "-p", "topp=0.3"
    )
