"""The dialogues of people, held again under the rules, and scored by a cache of ranks."""

import json

import numpy as np
import pytest

import dialgym
from dialgym.tasks.visual_dialogue.cached import CachedGuesser
from dialgym.tasks.visual_dialogue.scoring import is_hard
from dialgym.tasks.visual_dialogue.task import VisualDialogue
from dialgym.tasks.visual_dialogue.visdial import VisDialPool
from tests.support.toy_visdial import write_visdial

ID = "dialgym/VisualDialogue-v0"
CACHE = [
    [0.5, 0.1, 0.1, 0.1, 0.1],  # half way after the third answer
    [0.8, -0.3, 0.45, 0.0, 0.0],  # after the second
    [0.5, 0.0, 0.0, 0.0, 0.0],  # never
    [0.2, 0.6, 0.1, 0.1, 0.0],  # after the first
]


@pytest.fixture
def pool(tmp_path) -> VisDialPool:
    return VisDialPool(write_visdial(tmp_path, count=len(CACHE)))


@pytest.fixture
def named(pool, tmp_path) -> str:
    """The pool, as a setting."""
    return f"visdial:{tmp_path / 'visdial_1.0_val.json'}"


@pytest.fixture
def cache(tmp_path):
    path = tmp_path / "train_rank_reward_cache1.json"
    path.write_text(json.dumps(CACHE))
    return path


def said(row) -> list[str]:
    return [turn["text"] for turn in row["turns"]]


def original_rewards(dialogue, progress, yes_no=-2.0) -> list[float]:
    """ILQL's `Scene.from_json_cuttoff`: the reward of each answer, up to the last one."""
    rewards, gained = [], 0.0
    for number, (_, answer) in enumerate(dialogue.rounds):
        gained += progress[number + 1]
        final = gained / (1.0 - progress[0]) >= 0.5 - 1e-9
        rewards.append((0.0 if final else -1.0) + (yes_no if is_hard(answer) else 0.0))
        if final:
            break
    return rewards


def test_a_cache_gives_the_rewards_of_the_original(pool, named, cache):
    kwargs = {"pool": named, "guesser": f"cached:{cache}", "penalty": "hard", "reward": "ilql"}
    dataset = dialgym.collect(ID, "corpus", len(CACHE), env_kwargs=kwargs)
    for row, dialogue, progress in zip(dataset, pool.dialogues, CACHE, strict=True):
        assert said(row)[0] == dialogue.caption
        lines = [text for pair in dialogue.rounds for text in pair]
        assert said(row)[1:] == lines[: len(said(row)) - 1]
        wanted = original_rewards(dialogue, progress)
        assert [turn["reward"] for turn in row["turns"] if turn["said"]] == wanted
    assert dataset["success"].tolist() == [True, True, False, True]
    assert dataset["truncated"].tolist() == [False, False, True, False]  # four of ten rounds
    assert json.loads(dataset[2]["options"]) == {"image": 2}


def test_the_changes_of_rank_are_the_rewards_where_the_agent_stops(pool, named, cache):
    kwargs = {"pool": named, "guesser": f"cached:{cache}", "mode": "agent_stops"}
    stops = {"stops": True}
    dataset = dialgym.collect(ID, "corpus", 20, env_kwargs=kwargs, policy_kwargs=stops)
    number = 0
    for dialogue, progress in zip(pool.dialogues, CACHE, strict=True):
        for rounds in range(5):
            row = dataset[number]
            own = [turn for turn in row["turns"] if turn["said"]]
            asked = [question for question, _ in dialogue.rounds[:rounds]]
            assert [turn["text"] for turn in own] == [*asked, "<stop>"]
            earned = [turn["reward"] for turn in own]
            np.testing.assert_allclose(earned, [*progress[1 : 1 + rounds], 0.0], atol=1e-6)
            assert row["terminated"]
            number += 1
    with pytest.raises(ValueError, match="expected at most 20 episodes, the dialogues of the cor"):
        dialgym.collect(ID, "corpus", 21, env_kwargs=kwargs, policy_kwargs=stops)


def test_all_rounds_end_a_dialogue_without_a_stop(named):
    kwargs = {"pool": named, "guesser": "words", "mode": "agent_stops", "rounds": 4}
    stops = {"stops": True}
    dataset = dialgym.collect(ID, "corpus", 5, env_kwargs=kwargs, policy_kwargs=stops)
    assert ["<stop>" in said(row) for row in dataset] == [True, True, True, True, False]
    assert dataset["terminated"].all()


def test_the_first_images_of_a_split_have_its_cache(tmp_path, cache):
    pool = VisDialPool(write_visdial(tmp_path, count=len(CACHE)), size=2)
    assert len(CachedGuesser(pool, cache).percentiles([])) == 0


def test_what_people_did_not_say_is_unknown(pool, cache):
    task = VisualDialogue(pool=pool, guesser=f"cached:{cache}")
    state = task.initial(np.random.default_rng(0), {"image": 1})
    task.speak(state, pool.dialogues[1].rounds[0][0], np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"and not 'what color is the cat\? pink'.*'remote:URL'"):
        task.speak(state, "pink", np.random.default_rng(0))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "expected a list of rows; got dict"),
        ([[0.5]], "expected 4 rows, one of each image of the split; got 1"),
        ([*CACHE[:3], [0.5, 0.1]], "row 3: expected 5 numbers, the percentile rank"),
        ([*CACHE[:3], [0.5, "0.1", 0, 0, 0]], "row 3: expected 5 numbers"),
        ([[5.0, -1.5, 0.2, 0.1, 0.3], *CACHE[1:]], "row 0: expected sums from 0 to 1"),
    ],
)
def test_a_file_that_is_no_cache_of_these_images(pool, cache, content, message):
    cache.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        CachedGuesser(pool, cache)


@pytest.mark.parametrize(
    ("kwargs", "policy_kwargs", "message"),
    [
        ({"guesser": "cached:nothing.json"}, {}, r"expected a JSON file .*Check the path"),
        ({}, {}, r"policy 'corpus': expected the images of VisDial"),
        ({"guesser": "words"}, {"stops": True}, "expected mode='agent_stops'; got 'env_stops'"),
    ],
)
def test_bad_settings_are_one_clear_error(named, kwargs, policy_kwargs, message):
    env_kwargs = {**({"pool": named} if kwargs else {}), **kwargs}
    with pytest.raises(ValueError, match=message):
        dialgym.collect(ID, "corpus", 1, env_kwargs=env_kwargs, policy_kwargs=policy_kwargs)


def test_people_are_collected_from_the_real_file(real_file):
    kwargs = {"pool": f"visdial:{real_file('visdialconv')}", "guesser": "words"}
    dataset = dialgym.collect("dialgym/VisualDialogue-10Stop-v0", "corpus", 30, env_kwargs=kwargs)
    assert (dataset.lengths == 10).all()
    assert dataset["terminated"].all()
