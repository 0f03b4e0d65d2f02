"""The rules of everyday dialogues, the ways to choose a place, batches, speakers."""

import copy
import pickle
import sys
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.language.tokenizers import END, TAGS
from dialgym.tasks.daily_dialog import DailyDialog
from dialgym.tasks.daily_dialog.corpus import ActExamples
from dialgym.testing import check_batch, check_task
from dialgym.views.dialogue import LoopedBatch, make_batch
from dialgym.views.utterance_vector_env import UtteranceVectorEnv
from tests.dialgym.datasets.test_datasets_tokens import replay
from tests.support.everyday_talk import REWARDS, TALKS, Copies, Words, rows, write_jsonl


@pytest.fixture
def path(tmp_path):
    return write_jsonl(tmp_path / "talks.jsonl", rows())


def make(path, **kwargs):
    return DailyDialog(path, rewards=kwargs.pop("rewards", REWARDS), **kwargs)


def rng(seed=0):
    return np.random.default_rng(seed)


def said(state):
    return [(line.speaker, line.text) for line in state.lines]


def test_one_reply(path):
    task = make(path)
    state = task.initial(rng(), {"dialogue": 0, "turn": 3})
    assert said(state) == [
        ("user", "Hi, Ann."),
        ("system", "Hello, Bob."),
        ("user", "How are you?"),
    ]
    assert task.speaker(state) == "system"
    assert task.human(state) == "Fine, thanks."
    outcome = task.speak(state, "Fine, thanks.", rng())
    assert outcome.parts("system") == {"words": 0.2, "copies": 2.0}
    assert outcome.rewards == {"system": 2.2, "user": 0.0}
    assert (outcome.terminated, outcome.truncated, outcome.success) == (True, False, False)


def test_rewards_see_context_reference_and_labels(path):
    task = make(path, context=2)
    state = task.initial(rng(), {"dialogue": 0, "turn": 3})
    reply = task.take(state, "So so.")
    assert reply == (
        "So so.",
        ("Hello, Bob.", "How are you?"),
        ("Fine, thanks.",),
        {"act": "question", "emotion": "happiness"},
    )


def test_rewards_see_no_more_context_as_a_conversation_grows(path):
    task = make(path, start="first", turns=8, context=2)
    state = task.initial(rng(), {"dialogue": 0, "turn": 1})
    task.speak(state, "Hey.", rng())
    task.speak(state, "And you?", rng())
    assert task.take(state, "Well.").context == ("Hey.", "And you?")


def test_returns_are_bounded_by_turns_and_signs(path):
    rewards = {"words": {"reward": Words(), "weight": -0.1}, "copies": Copies()}
    assert make(path, turns=3, rewards=rewards).facts.returns["system"] == (-15.0, 3.0)
    assert make(path, rewards=rewards).facts.returns["system"] == (-5.0, 1.0)


def test_a_conversation_follows_the_peoples_own_or_not(path):
    task = make(path, start="first", turns=8)
    script = task.speaker_named("user", "script")
    state = task.initial(rng(), {"dialogue": 0, "turn": 1})
    rewards = []
    for text in ("Hello, Bob.", "What?"):
        outcome = task.speak(state, text, rng())
        rewards.append(outcome.rewards["system"])
        if not outcome.terminated:
            task.speak(state, script.reply(task, state, rng()), rng())
    assert rewards == [2.2, 0.1]
    assert outcome.terminated
    assert [text for _, text in said(state)] == ["Hi, Ann.", "Hello, Bob.", "How are you?", "What?"]
    other = task.initial(rng(), {"dialogue": 0, "turn": 2})
    assert said(other) == [("system", "Hi, Ann."), ("user", "Hello, Bob.")]


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_conversation_ends_with_its_turns_or_its_model(path, turns):
    task = make(path, start="first", turns=turns)
    state = task.initial(rng(), {"dialogue": 0, "turn": 2})
    for turn in range(1, turns + 1):
        outcome = task.speak(state, "Yes.", rng())
        assert outcome.terminated == (turn == min(turns, 2))  # its utterances 2 and 4
        if outcome.terminated:
            break
        task.speak(state, "No.", rng())
    assert state.said == min(turns, 2)


def test_places_are_all_turns_with_enough_before_them(path):
    expected = {
        (1, "any"): [(0, 1), (0, 2), (0, 3), (0, 4), (1, 1), (1, 2), (2, 1)],
        (3, "any"): [(0, 3), (0, 4)],
        (1, "first"): [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1)],
    }
    for (least, start), places in expected.items():
        task = make(path, least_context=least, start=start)
        assert [tuple(place) for place in task.places.tolist()] == places
        drawn = [task.initial(rng(), {"index": i}) for i in range(len(places))]
        assert [(state.dialogue, state.turn) for state in drawn] == places


def test_places_are_drawn_uniformly(path):
    task, generator = make(path), rng(5)
    drawn = [task.initial(generator) for _ in range(7000)]
    counts = np.zeros(len(task.places))
    for state in drawn:
        counts[task.places.tolist().index([state.dialogue, state.turn])] += 1
    assert abs(counts - 1000).max() < 120  # four standard deviations


def test_empty_utterances_are_never_asked_for(tmp_path):
    talks = [{"dialog": ["Hi.", "你好", "What?"]}]
    task = make(write_jsonl(tmp_path / "talks.jsonl", talks))
    assert task.places.tolist() == [[0, 2]]


@pytest.mark.parametrize(
    ("options", "least", "message"),
    [
        (
            {"index": 7},
            1,
            "option 'index' of DailyDialog must be a whole number from 0 to 6; got 7",
        ),
        ({"dialogue": -1}, 1, "option 'dialogue' of DailyDialog must be .* from 0 to 2; got -1"),
        ({"dialogue": 2, "turn": 2}, 1, "option 'turn' of .* from 1 to 1; got 2"),
        ({"dialogue": 0, "turn": True}, 1, "option 'turn' .* got True"),
        ({"turn": 1}, 1, "option 'turn' of DailyDialog needs the option 'dialogue'"),
        ({"index": 1, "dialogue": 1}, 1, "give 'index', or 'dialogue' and 'turn'"),
        ({"place": 1}, 1, "unknown option 'place'"),
        ({"dialogue": 2}, 2, "dialogue 2 is too short to begin with 2"),
    ],
)
def test_bad_options(path, options, least, message):
    with pytest.raises(ValueError, match=message):
        make(path, least_context=least).initial(rng(), options)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"turns": 0}, "turns of DailyDialog must be a whole number from 1; got 0"),
        ({"context": 2, "least_context": 3}, "least_context of .* from 1 to 2; got 3"),
        ({"start": "second"}, "start of DailyDialog must be one of 'any', 'first'"),
        ({"reply_tokens": 1}, "reply_tokens .* from 2; got 1"),
        ({"split": "dev"}, "unknown split 'dev'.* Known: test, train"),
        ({"least_context": 5}, "no dialogue of the split 'train' has an utterance with 5 before"),
        ({"rewards": {}}, "rewards must be a mapping"),
        ({"rewards": {"metor": 1.0}}, "unknown reward 'metor'"),
    ],
)
def test_bad_settings(path, settings, message):
    with pytest.raises(ValueError, match=message):
        make(path, **settings)


VARIANTS = [
    {},
    {"turns": 3},
    {"turns": 8, "start": "first"},
    {"context": 1, "longest": 9},
    {"split": "test", "least_context": 2},
]


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_rules_and_batches_keep_to_the_facts(path, settings):
    task = make(path, **settings)
    task.tokenizer = "char"
    check_task(task, episodes=8)
    check_batch(task, num_envs=3, steps=120)


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
@pytest.mark.parametrize("simulator", ["script", "retrieval"])
def test_a_batch_equals_the_loop(path, settings, simulator):
    """Replies of people's own words and others, over autoresets, with either partner."""
    task = make(path, **settings)
    kwargs = {"simulator": simulator, "autoreset_mode": "SameStep"}
    fast, slow = (UtteranceVectorEnv(task, 6, **kwargs) for _ in "12")
    slow.dialogues = LoopedBatch(task, 6, "system", task.speaker_named("user", simulator))
    assert not isinstance(fast.dialogues, LoopedBatch)
    assert fast.reset(seed=3)[0] == slow.reset(seed=3)[0]
    generator = rng()
    for _ in range(25):
        states = [fast.dialogues.state(row) for row in range(6)]
        texts = tuple(task.human(s) if generator.random() < 0.5 else "Well." for s in states)
        for mine, loop in zip(fast.step(texts), slow.step(texts)):
            np.testing.assert_equal(mine, loop)


def test_batches_take_an_option_for_each_row(path):
    task = make(path)
    env = UtteranceVectorEnv(task, 3)
    env.reset(seed=0, options={"index": [4, 0, 6]})
    states = [env.dialogues.state(row) for row in range(3)]
    assert [[s.dialogue, s.turn] for s in states] == task.places[[4, 0, 6]].tolist()
    env.reset(seed=0, options={"dialogue": 1})
    assert {env.dialogues.state(row).dialogue for row in range(3)} == {1}
    with pytest.raises(ValueError, match="one for each of the 3 rows; got 2"):
        env.reset(options={"index": [1, 2]})


def test_retrieval_finds_the_nearest_context(path):
    task = make(path, split="test")
    state = task.initial(rng(), {"dialogue": 0, "turn": 3})  # Hello, Sue. How are you today?
    found = task.speaker_named("system", "retrieval")
    assert found.reply(task, state, rng()) == "Fine, thanks."
    near = task.speaker_named("user", "retrieval", nearest=2)
    several = {near.reply(task, state, rng(seed)) for seed in range(20)}
    assert len(several) == 2
    assert near.reply(task, state, rng(3)) == near.reply(task, state, rng(3))


def test_retrieval_does_not_look_up_the_dialogue_itself(path):
    task = make(path)
    state = task.initial(rng(), {"dialogue": 0, "turn": 3})
    own = set(TALKS[0][1])
    speaker = task.speaker_named("system", "retrieval", nearest=3)
    assert not own & {speaker.reply(task, state, rng(seed)) for seed in range(20)}


def test_random_and_reference_speakers(path):
    task = make(path)
    state = task.initial(rng(), {"index": 4})
    assert task.speaker_named("system", "reference").reply(task, state, rng()) == "Yes, please."
    speaker, generator = task.speaker_named("system", "random"), rng()
    texts = {speaker.reply(task, state, generator) for _ in range(300)}
    assert texts == {turn for split, turns in TALKS if split == "train" for turn in turns}


def test_a_partner_of_your_own(path):
    class Parrot:
        def reply(self, task, state, rng):
            return state.lines[-1].text

    task = make(path, start="first", turns=2)
    batch = make_batch(task, 1, "system", Parrot())
    row = np.arange(1)
    batch.begin(row, batch.draw(row, [rng()], {"dialogue": 0, "turn": 1}), [rng()])
    outcome = batch.say(row, np.array(["Nice."]), [rng()])
    assert outcome.heard_texts.tolist() == ["Nice."]


def test_states_and_tasks_are_copied_and_pickled(path):
    task = make(path)
    task.tokenizer = "char"
    other = pickle.loads(pickle.dumps(task))
    assert "corpus" not in other.__dict__
    assert other.corpus is task.corpus  # read once per process
    state = task.initial(rng())
    twin = state.copy()
    task.speak(twin, "Hm.", rng())
    assert copy.deepcopy(state) == state != twin


def test_examples_are_the_acts_of_the_training_split(path):
    examples = ActExamples(path, 1)()
    assert len(examples) == 10
    reply, act = examples[2]
    assert (reply.text, reply.context, act) == ("How are you?", ("Hello, Bob.",), "inform")
    assert examples[0][0].context == ()


def test_intents_are_learned_from_the_training_split_alone(tmp_path):
    path = write_jsonl(tmp_path / "t.jsonl", [row for row in rows() if row["split"] == "test"])
    with pytest.raises(
        ValueError, match=r"'intent' learns from the split 'train'.* has test alone"
    ):
        DailyDialog(path, "test", rewards={"intent": 1.0})
    assert DailyDialog(path, "test", rewards={"intent": {"model": "mine"}}).corpus.length(0) == 4


@pytest.mark.parametrize("package", ["nltk", "rouge_score", "sacrebleu", "sklearn"])
def test_its_own_rewards_miss_what_is_not_installed_at_once(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ImportError, match=rf"{package}, which is not installed.*dialgym\[rewards\]"
    ):
        DailyDialog()


def test_data_that_has_changed_is_another_task(tmp_path, monkeypatch):
    def places(data):
        return len(gym.make("dialgym/DailyDialog-v0", data=data).unwrapped.task.places)

    path = write_jsonl(tmp_path / "t.jsonl", rows())
    assert places(path) == 7
    write_jsonl(tmp_path / "t.jsonl", rows()[1:])
    assert places(path) == 3
    monkeypatch.chdir(tmp_path)
    assert places("t.jsonl") == 3
    write_jsonl(tmp_path / "t.jsonl", rows())
    (tmp_path / "sub").mkdir()
    write_jsonl(tmp_path / "sub" / "t.jsonl", rows()[2:])
    monkeypatch.chdir(tmp_path / "sub")
    assert places("t.jsonl") == 1


def test_data_may_be_named_for_all_environments(path, monkeypatch):
    built_in = DailyDialog(rewards=REWARDS)
    monkeypatch.setenv("DIALGYM_DAILYDIALOG", str(path))
    named, before = DailyDialog(rewards=REWARDS), DailyDialog.surroundings({})
    assert (built_in.stand_in, named.stand_in) == ("built-in", None)
    assert [*named.corpus.texts] == [*make(path).corpus.texts]
    assert before == DailyDialog.surroundings({"data": str(path)})
    monkeypatch.setenv("DIALGYM_DAILYDIALOG", "nowhere")
    with pytest.raises(ValueError, match="nowhere"):
        DailyDialog(rewards=REWARDS)


def test_intents_need_acts(tmp_path):
    path = write_jsonl(tmp_path / "talks.jsonl", rows(with_acts=False))
    with pytest.raises(ValueError, match=r"'intent' needs the act of every utterance.*meteor"):
        DailyDialog(path, rewards={"intent": 1.0})
    assert make(path).corpus.labels(0, 0) == {"emotion": "happiness"}


@pytest.mark.parametrize("settings", [{"turns": 1}, {"turns": 3, "start": "first"}], ids=str)
def test_collected_references_are_actions_and_contexts_are_not(path, settings):
    """Data to clone from: the tokens are those that the env shows, and only replies are actions."""
    kwargs = {"data": path, "rewards": {"length": 1.0}, "tokenizer": "char", **settings}
    dataset = dialgym.collect("DailyDialog-v0", "reference", 20, env_kwargs=kwargs)
    data = dataset.tokens()
    batch = data.batch(np.arange(20))
    replay(dataset, batch, **kwargs)
    people = [turn for split, turns in TALKS if split == "train" for turn in turns]
    for tokens, actions, episode in zip(batch.tokens, batch.is_action, dataset):
        said = [turn["text"] for turn in episode["turns"] if turn["said"]]
        spoken = [data.layout.tokenizer.encode(text) for text in said]
        assert tokens[actions].tolist() == [t for ids in spoken for t in (*ids, END)]
        assert 1 <= len(said) <= settings["turns"]
        assert set(said) <= set(people)
        parties = [turn["party"] for turn in episode["turns"]]
        assert all(a != b for a, b in pairwise(parties))


@pytest.mark.parametrize("make_env", [gym.make, gym.make_vec])
def test_a_user_that_never_has_the_floor_is_no_learner(path, make_env):
    kwargs = {"data": path, "rewards": {"length": 1.0}, "tokenizer": "char", "learner": "user"}
    with pytest.raises(ValueError, match=r"before the user had the floor. Learn as the system"):
        make_env("dialgym/DailyDialog-v0", **kwargs).reset(seed=0)
    env = make_env("dialgym/DailyDialog-v0", turns=2, **kwargs)
    env.reset(seed=0, options={"dialogue": 0, "turn": 1})


@pytest.mark.parametrize("make_env", [gym.make, gym.make_vec])
def test_a_context_longer_than_the_window(path, make_env):
    kwargs = {"data": path, "rewards": {"length": 1.0}, "tokenizer": "char", "longest": 20}
    place = {"dialogue": 0, "turn": 4}  # begins with 61 tokens
    env = make_env("dialgym/DailyDialog-v0", window=60, **kwargs)
    with pytest.raises(ValueError, match=r"a dialogue begins with more than it holds.*'slide'"):
        env.reset(seed=0, options=place)
    env.reset(seed=0, options={"dialogue": 0, "turn": 1})
    sliding = make_env("dialgym/DailyDialog-v0", window=60, overflow="slide", **kwargs)
    observation = np.ravel(sliding.reset(seed=0, options=place)[0])
    tags = observation[np.isin(observation, list(TAGS.values()))]
    assert tags.tolist() == [TAGS["system"], TAGS["user"], TAGS["system"]][-len(tags) :]
    assert len(tags) < 5
