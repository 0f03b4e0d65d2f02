"""The rules of logged dialogues, and the folders that they come from."""

import json
import shutil

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.tasks.logged import Logged
from dialgym.tasks.logged.corpus import BUILTIN, CARD


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(str(BUILTIN), tmp_path / "own")
    return tmp_path / "own"


def test_what_the_log_said_earns_all_and_ends_where_the_log_ends():
    task, rng = Logged(), np.random.default_rng(0)
    state = task.initial(rng, {"dialogue": 2})
    gained = []
    while not state.over:
        outcome = task.speak(state, task.logged(state), rng)
        gained.append(outcome.rewards["system"])
    logged = [task.corpus.texts[place] for place in task.corpus.turns(2)]
    assert [line.text for line in state.lines] == logged
    assert gained[1::2] == [0.0] * len(gained[1::2])  # the user's
    assert gained[::2] == [1.0] * len(gained[::2])
    assert outcome.success
    assert outcome.terminated


def test_the_user_says_what_the_log_has_whatever_was_said():
    env = gym.make("dialgym/Logged-utterance-v0")
    env.reset(seed=0, options={"dialogue": 0})
    _, reward, _, _, info = env.step("zebra")
    task = env.unwrapped.task
    assert info["reply"] == task.corpus.texts[2]
    assert reward == 0


def test_another_folder_is_another_task(folder):
    own = gym.make("dialgym/Logged-v0", data=str(folder))
    assert own.unwrapped.task.folder == folder
    assert own.observation_space == gym.make("dialgym/Logged-v0").observation_space


def test_scripted_policies_play_it(folder):
    best = dialgym.evaluate("reference", "dialgym/Logged-v0", episodes=20, seeds=[0])
    some = dialgym.evaluate("random", "dialgym/Logged-v0", episodes=20, seeds=[0])
    assert best.oracle
    assert not some.oracle
    assert best.success == 1 > some.success
    assert some.mean_return < best.mean_return / 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"form": 9}, "it is of form 9"),
        ({"turns": 0}, "whole numbers from 1"),
        ({"pieces": {"system": 4}}, "numbers of system and user"),
        ({"charset": 3}, "expected text as charset"),
    ],
)
def test_a_card_that_is_none(folder, change, message):
    card = json.loads((folder / CARD).read_text("utf-8"))
    (folder / CARD).write_text(json.dumps(card | change), "utf-8")
    with pytest.raises(ValueError, match=message):
        Logged(str(folder))


def test_folders_that_are_none(folder, tmp_path):
    with pytest.raises(ValueError, match=r"data of Logged: there is no file or folder 'none'"):
        Logged("none")
    with pytest.raises(
        ValueError, match=r"expected a folder of imported dialogues, with logged\.js"
    ):
        Logged(str(tmp_path))
    (folder / "dialogues.jsonl").write_text(
        '{"turns": [{"party": "user", "text": "a"}, {"party": "user", "text": "b"}]}', "utf-8"
    )
    with pytest.raises(ValueError, match=r"of the parties in turns.* dialogue 0 has user, user"):
        Logged(str(folder)).initial(np.random.default_rng(0))
