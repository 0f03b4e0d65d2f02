"""Room in the window is made for ordinary dialogues where pieces of words are the tokens."""

import numpy as np
import pytest

import dialgym
from dialgym.registry import entry_of, make_task
from dialgym.testing import check_batch
from dialgym.views.spaces import TokenLayout, tokenizer_of

tokenizers = pytest.importorskip("tokenizers")

CASES = [
    ("SlotFilling-v0", "acts"),
    ("SlotFilling-v0", "english"),
    ("CamRestaurants-Env3-v0", "words"),
    ("Laptops11-Env6-v0", "acts"),
    ("Laptops11-Env6-v0", "english"),
    ("MultiWOZ-v0", "words"),
    ("MultiWOZ-v0", "english"),
]
MOST = 20_000
"""Tokens of a default window; room for the longest utterance each time took up to 944,596."""


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory):
    """The worst there is: a BPE of bytes that has learned no merge."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=256, initial_alphabet=alphabet)
    tokenizer.train_from_iterator([], trainer)
    folder = tmp_path_factory.mktemp("bytes")
    tokenizer.save(str(folder / "tokenizer.json"))
    return f"hf:{folder}"


def dialogues(entry, task, count=20):
    """What the system sees of dialogues of the expert, and of the random policy."""
    rng = np.random.default_rng(0)
    user = task.speaker_named("user", next(iter(task.speakers["user"])))
    for policy in (entry.row.expert_policy, "random"):
        system = task.speaker_named("system", policy)
        for _ in range(count // 2):
            state, over = task.initial(rng), False
            while not over:
                speaker = system if task.speaker(state) == "system" else user
                outcome = task.speak(state, speaker.reply(task, state, rng), rng)
                over = outcome.terminated or outcome.truncated
            yield task.transcript(state, "system")


@pytest.mark.parametrize(("env_id", "language"), CASES)
def test_ordinary_dialogues_fit_whole_even_as_bytes(byte_level, env_id, language):
    entry = entry_of(env_id)
    task = make_task(entry, {"language": language})
    layout = TokenLayout.of(task, tokenizer_of(task, byte_level), "system", None)
    assert layout.window < MOST
    for lines in dialogues(entry, task):
        written = [layout.encode(line) for line in lines]
        assert [layout.tokenizer.decode(ids[1:-1]) for ids in written] == [x.text for x in lines]
        own = [len(ids) - 1 for ids, x in zip(written, lines) if x.speaker == "system"]
        assert max(own, default=0) <= layout.said_limit
        assert sum(map(len, written)) + 1 + layout.said_limit <= layout.window


def test_every_view_makes_the_same_room(byte_level):
    task = make_task(entry_of("SlotFilling-v0"), {})
    check_batch(task, num_envs=2, steps=150, tokenizer=tokenizer_of(task, byte_level))


def test_a_window_may_be_given(byte_level):
    env = dialgym.make("SlotFilling-v0", tokenizer=byte_level, window=1_000)
    assert env.observation_space.shape == (1_000,)
