"""Ids, arguments, and the errors of both."""

import gymnasium as gym
import pytest

import dialgym
from dialgym import registry
from dialgym.registry import entry_of, list_ids


def test_ids_come_by_view_and_by_tag():
    assert "dialgym/Wordle-v0" in list_ids()
    assert "dialgym/Wordle-utterance-v0" in list_ids()
    assert "dialgym/CamRestaurants-Env1-act-v0" in list_ids()
    by_view = [*list_ids("token"), *list_ids("utterance"), *list_ids("act")]
    assert sorted(by_view) == sorted(list_ids())
    quick = ["Wordle-20", "Wordle-Alike", "TwentyQuestions-16", "VisualDialogue-100"]
    ids = [f"dialgym/{name}{view}-v0" for name in quick for view in ("", "-utterance")]
    assert set(ids) <= set(list_ids("quick"))
    assert "dialgym/Wordle-v0" not in list_ids("quick")


def test_an_id_may_be_short():
    assert entry_of("Wordle-v0") is entry_of("dialgym:dialgym/Wordle-v0")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dialgym.aec_env("dialgym/Wordl-v0"),
         r"unknown environment id 'dialgym/Wordl-v0'\. Did you mean 'dialgym/Wordle-v0'\?"),
        (lambda: list_ids("quik"), r"unknown tag 'quik'\. Did you mean 'quick'\?"),
        (lambda: gym.make("dialgym/Wordle-v0", hardmode=True),
         r"Wordle-v0 got an unexpected keyword argument 'hardmode'\. Did you mean 'hard_mode'\?"),
        (lambda: gym.make("dialgym/Wordle-v0", tokeniser="char"), "Did you mean 'tokenizer'"),
        (lambda: gym.make("dialgym/Wordle-v0", learner="host"),
         "learner of Wordle must be one of 'system', 'user'; got 'host'"),
        (lambda: gym.make("dialgym/Wordle-v0", simulator="hosst"),
         r"unknown speaker for the user 'hosst' in Wordle\. Did you mean 'host'\?"),
        (lambda: gym.make("dialgym/Wordle-v0", simulator=3), r"object with reply\(task, state"),
        (lambda: gym.make("dialgym/Wordle-v0", anchors="no"),
         "anchors of Wordle must be True or False; got 'no'"),
        (lambda: gym.make_vec("dialgym/Wordle-v0", 2, action_masks=1), "True or False; got 1"),
        (lambda: dialgym.aec_env("dialgym/Wordle-v0", masked_observations="yes"),
         "masked_observations of Wordle must be True or False; got 'yes'"),
        (lambda: gym.make("dialgym/Comments-v0", parent=2.7), "parent of Comments must be True"),
        (lambda: gym.make("dialgym/Comments-v0", split=["test"]), r"unknown split \['test'\]"),
        (lambda: gym.make("dialgym/Comments-v0", data=""), "expected a file or folder.* got ''"),
        (lambda: gym.make("dialgym/Wordle-v0", window=3), "expected a whole number from 18"),
        (lambda: gym.make("dialgym/Wordle-v0", overflow="wrap"), "overflow of Wordle must be one"),
        (lambda: gym.make("dialgym/Wordle-v0", render_mode="ascii"), "must be one of 'ansi'"),
        (lambda: gym.make_vec("dialgym/Wordle-v0", 0), "must be a whole number from 1; got 0"),
        (lambda: gym.make_vec("dialgym/Wordle-v0", 2, autoreset_mode="Never"),
         "autoreset_mode of Wordle must be one of"),
        (lambda: gym.make_vec("dialgym/Wordle-v0", 2, workers=3),
         "workers of 2 dialogues must be a whole number from 1 to 2; got 3"),
        *((lambda num_envs=num_envs: gym.make_vec("dialgym/Wordle-v0", num_envs, workers=1),
           "num_envs of Wordle must be a whole number from 1") for num_envs in ("3", 2.0, True)),
        (lambda: gym.make_vec("dialgym/Wordle-utterance-v0", 2, workers=1),
         "token and act views can be sharded"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_bad_arguments_are_one_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_gymnasium_suggests_the_nearest_id():
    with pytest.raises(gym.error.NameNotFound, match="Did you mean: `Wordle`"):
        gym.make("dialgym/Wordlee-v0")


def test_a_removed_id_explains_itself(monkeypatch):
    monkeypatch.setattr(
        registry,
        "read_registry",
        lambda: {"environments": {}, "removed": {"dialgym/Old-v0": "use New-v0"}},
    )
    with pytest.raises(ValueError, match="'dialgym/Old-v0' was removed: use New-v0"):
        entry_of("dialgym/Old-v0")


def test_environments_share_a_task():
    first, second = gym.make("dialgym/Wordle-v0"), gym.make("dialgym/Wordle-v0")
    assert first.unwrapped.task is second.unwrapped.task
    assert gym.make("dialgym/Wordle-v0", turns=3).unwrapped.task.turns == 3
    listed = gym.make("dialgym/Wordle-v0", answers=["crane", "slate"])
    assert listed.unwrapped.task.answers == ("crane", "slate")


def test_a_setting_of_another_type_is_another_setting():
    assert gym.make("dialgym/Wordle-v0", turns=6).unwrapped.task.turns == 6
    with pytest.raises(ValueError, match=r"turns of Wordle must be a whole .* got 6\.0"):
        gym.make("dialgym/Wordle-v0", turns=6.0)


def test_public_names_exist():
    pytest.importorskip("stable_baselines3")
    for name in dialgym.__all__:
        assert getattr(dialgym, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'mak'"):
        dialgym.mak  # noqa: B018
