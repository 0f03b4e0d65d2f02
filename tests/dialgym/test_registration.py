"""Your own tasks: in every tool, by id, as an object, a class, or by name."""

import importlib
import json
import subprocess
import sys
from itertools import count

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym import registry
from dialgym.registry import entry_of
from dialgym.tasks import Task
from tests.support.commands import fail, succeed
from tests.support.own_task import GUESS

NUMBERS = count()


@pytest.fixture
def guess(tmp_path, monkeypatch):
    """A fresh module with the task, in the current folder; what it registers is taken back."""
    name = f"guess_{next(NUMBERS)}"
    (tmp_path / f"{name}.py").write_text(GUESS.replace("MODULE", name))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(registry, "_added", {})
    monkeypatch.setattr(gym.envs.registration, "registry", {**gym.registry})
    monkeypatch.setattr(gym, "registry", gym.envs.registration.registry)
    importlib.invalidate_caches()
    yield name
    sys.modules.pop(name, None)


def kinds(name):
    """All that stands for the task in its token view."""
    module = importlib.import_module(name)
    return ["Guess-v0", f"{name}:Guess-v0", f"{name}:GuessNumber", module.GuessNumber,
            module.GuessNumber(), entry_of("Guess-v0"), gym.spec("Guess-v0")]  # fmt: skip


def test_a_registered_task_has_an_id_for_each_view(guess):
    importlib.import_module(guess)
    assert dialgym.list_ids("mine") == ["Guess-v0", "Guess-utterance-v0"]
    assert gym.make("Guess-v0").unwrapped.task.turns == 3
    assert gym.make("Guess-v0", turns=2).unwrapped.task.turns == 2
    assert gym.make_vec("Guess-utterance-v0", 2).num_envs == 2
    assert entry_of("Guess-v0").row.description == (
        "Find a number below ten; each wrong guess costs 1."
    )


def test_whatever_stands_for_a_task_goes_wherever_an_id_does(guess):
    pytest.importorskip("stable_baselines3")
    for kind in kinds(guess):
        env = dialgym.make(kind, turns=2)
        env.reset(seed=0)
        assert env.unwrapped.task.turns == 2
        assert dialgym.make_vec(kind, 3).reset(seed=0)[0].shape[0] == 3
        assert dialgym.sb3_vec_env(kind, 2, seed=0).reset().shape[0] == 2
        assert dialgym.aec_env(kind).possible_agents == ["system", "user"]
        assert dialgym.parallel_env(kind).possible_agents == ["system", "user"]
        result = dialgym.evaluate("count", kind, 20, (0,))
        assert result.mean_return == result[entry_of(kind).id].mean_return < 0


def test_a_task_object_is_played_as_it_is(guess):
    module = importlib.import_module(guess)
    task = module.GuessNumber(turns=2)
    assert task.made_with == {"turns": 2}
    assert dialgym.make(task).unwrapped.task is task
    changed = dialgym.make(task, top=5).unwrapped.task
    assert (changed.turns, changed.top) == (2, 5)


def test_collected_dialogues_of_any_of_them_can_be_read_again(guess):
    pytest.importorskip("pyarrow")
    module = importlib.import_module(guess)
    for kind, workers in (("Guess-v0", 0), (module.GuessNumber, 0), (module.GuessNumber(2), 1)):
        data = dialgym.collect(kind, "count", 6, workers=workers)
        tokens = data.tokens()
        assert tokens.layout.task.turns == (2 if isinstance(kind, Task) else
                                            3 if isinstance(kind, str) else 4)  # fmt: skip
        assert len(tokens) == 6


def test_the_same_dialogues_under_any_name(guess):
    task = importlib.import_module(guess).GuessNumber(turns=3)
    by_id, by_object = (dialgym.evaluate("count", kind, 50, (0,)) for kind in ("Guess-v0", task))
    assert np.array_equal(by_id.overall.returns, by_object.overall.returns)


def test_workers_of_a_batch_make_it(guess):
    importlib.import_module(guess)
    env = gym.make_vec("Guess-v0", 4, workers=1)
    try:
        alone = gym.make_vec("Guess-v0", 4)
        assert np.array_equal(env.reset(seed=3)[0], alone.reset(seed=3)[0])
    finally:
        env.close()


@pytest.mark.parametrize("method", [pytest.param("spawn", marks=pytest.mark.slow), "forkserver"])
def test_workers_of_sb3_make_it(guess, method):
    """By our own pool, and by SB3's with the id that names the module."""
    envs = pytest.importorskip("stable_baselines3.common.vec_env")
    util = pytest.importorskip("stable_baselines3.common.env_util")
    importlib.import_module(guess)
    kwargs = {"vec_env_kwargs": {"start_method": method}}
    for pool in (
        dialgym.make_sb3_pool("Guess-v0", 2, **kwargs),
        util.make_vec_env(f"{guess}:Guess-v0", 2, vec_env_cls=envs.SubprocVecEnv, **kwargs),
    ):
        assert pool.reset().shape[0] == 2
        pool.close()


def test_a_class_that_workers_cannot_import_is_refused(guess):
    class Local(importlib.import_module(guess).GuessNumber):
        pass

    with pytest.raises(ValueError, match=r"other processes cannot import .*Local"):
        dialgym.make_vec(Local, 4, workers=2)
    with pytest.raises(ValueError, match="module of its own, at the top level, or use workers=0"):
        dialgym.collect(Local(), "count", 3, workers=1)


def test_an_id_of_gymnasium_with_our_entry_point_works_in_every_tool(guess):
    module = importlib.import_module(guess)
    gym.register(
        "Plain-v0",
        "dialgym.views.token_env:TokenEnv",
        kwargs={"task": module.GuessNumber(turns=2), "action_masks": True},
        max_episode_steps=1,
    )
    assert "action_mask" in dialgym.make("Plain-v0").reset(seed=0)[1]
    assert dialgym.make_vec("Plain-v0", 2).reset(seed=0)[0].shape[0] == 2
    assert dialgym.evaluate("count", "Plain-v0", 10, (0,)).mean_return < 0
    gym.register("Longer-v0", "dialgym.views.making:make_view",
                 kwargs={"env_id": "Guess-v0", "turns": 5})  # fmt: skip
    assert dialgym.aec_env("Longer-v0").task.turns == 5
    for env_id, cut in (("Plain-v0", True), ("Longer-v0", False)):
        pool = dialgym.sb3_vec_env(env_id, 2, seed=0)
        pool.reset()
        assert pool.step(np.zeros(2, int))[2].tolist() == [cut] * 2


def test_a_spec_survives_as_json(guess):
    importlib.import_module(guess)
    again = gym.envs.registration.EnvSpec.from_json(gym.spec("Guess-v0").to_json())
    assert json.loads(gym.spec("Guess-v0").to_json())["kwargs"]["env_id"]["id"] == "Guess-v0"
    assert gym.make(again).unwrapped.task.turns == 3


def test_registering_by_name_imports_nothing_where_the_views_are_given(guess):
    ids = dialgym.register("lab/Later-v2", "no_such_module:Guess", views=["token", "utterance"])
    assert ids == ["lab/Later-v2", "lab/Later-utterance-v2"]
    with pytest.raises(ValueError, match="there is no module 'no_such_module' here"):
        gym.make("lab/Later-v2")


def test_what_is_registered_again_is_replaced(guess):
    module = importlib.import_module(guess)
    dialgym.register("Guess-v0", module.GuessNumber, {"turns": 1}, env_kwargs={"window": 40})
    env = gym.make("Guess-v0").unwrapped
    assert (env.task.turns, env.observation_space.window) == (1, 40)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: dialgym.register("Wordle-v0", m.GuessNumber), "Wordle-v0' is dialgym's"),
        (lambda m: dialgym.register("Guess-act-v0", m.GuessNumber), "token view, such as Guess-v0"),
        (lambda m: dialgym.register("Guess-v1", int), "or module:Class; got <class"),
        (lambda m: dialgym.register("Guess-v1", m.GuessNumber, {"turn": 3}), "you mean 'turns'"),
        (lambda m: dialgym.register("Guess-v1", m.GuessNumber, views=["tokens"]), "'token'"),
        (lambda m: dialgym.make(f"{m.__name__}:GuesNumber"), "Did you mean 'GuessNumber'"),
        (lambda m: dialgym.make("no_module:Guess"), "there is no module 'no_module' here"),
        (lambda m: dialgym.make(f"{m.__name__}:State"), "expected an id, a dialgym.tasks.Task"),
        (lambda m: dialgym.make(f"{m.__name__}:Guess-v7"), "unknown environment id 'Guess-v7'"),
        (lambda m: dialgym.make("CartPole-v1"), "expected an entry point of dialgym with a task"),
        (lambda m: dialgym.make(3), "expected an id"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_clear_error(guess, call, message):
    with pytest.raises(ValueError, match=message):
        call(importlib.import_module(guess))


def test_a_missing_import_inside_a_module_is_told_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "broken_own.py").write_text("import a_package_that_is_missing\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_missing"):
        dialgym.make("broken_own:Task")


def test_the_command_line_finds_modules_of_the_current_folder(guess):
    sys.path.remove(next(path for path in sys.path if path))  # a script's folder is on it already
    where = f"{guess}:GuessNumber"
    assert "✓ GuessNumber: views agree" in succeed("check", where, "-n", "3")
    assert where in succeed("evaluate", "count", where, "-n", "5")
    assert "Guess-v0" in succeed("evaluate", "count", f"{guess}:Guess-v0", "-n", "5")
    assert "return" in succeed("play", where, "--policy", "count", "--seed", "0")
    succeed("collect", where, "--policy", "count", "-n", "4", "--out", "games")
    assert len(dialgym.load_dataset("games").tokens()) == 4
    assert "there is no module 'gues' here" in fail("evaluate", "count", "gues:GuessNumber")


def test_it_is_trained_from_the_command_line(guess):
    pytest.importorskip("stable_baselines3")
    run = ("--timesteps", "64", "--n-envs", "4", "--out", "run")
    succeed("train", "ppo", f"{guess}:GuessNumber", *run)
    assert "GuessNumber" in succeed("evaluate", "run", f"{guess}:GuessNumber", "-n", "4")


def test_another_process_finds_it_as_well(guess):
    command = [sys.executable, "-m", "dialgym", "evaluate", "count", f"{guess}:Guess-v0", "-n", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


REFUSED = {
    "id of a module": ({"id": "json:Foo-v0"}, r"expected an id such as .* got 'json:Foo-v0'"),
    "id of a number": ({"id": 3}, "expected an id such as .* got 3"),
    "argument of views": ({"env_kwargs": {"leaner": "user"}}, "Did you mean 'learner'"),
    "settings of no view": ({"view_settings": {"utterence": {}}}, "Did you mean 'utterance'"),
    "settings in a list": ({"settings": [1]}, r"settings of Foo-v0: expected a mapping.* \[1\]"),
    "tags in one string": ({"tags": "mine"}, "tags of Foo-v0: expected a sequence.*'mine'"),
    "score of no name": ({"scores": {"randm": -5.0}}, "Did you mean 'random'"),
    "score that is none": ({"scores": {"random": "a"}}, "random in scores of Foo-v0 must be a fin"),
}


@pytest.mark.parametrize(("given", "says"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_registered_is_said_at_once(given, says):
    arguments = {"id": "Foo-v0", "task": "dialgym.tasks.wordle:Wordle", **given}
    with pytest.raises(ValueError, match=says):
        dialgym.register(**arguments)
    assert "Foo-v0" not in gym.registry
