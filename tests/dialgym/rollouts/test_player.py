"""Playing: who may play, what is kept, and that nobody else's randomness is touched."""

import random
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.rollouts import Player, episode_seed
from tests.support.players import SMALL, Fixed, FixedTokens

ACTS = "dialgym/CamRestaurants-Env1-act-v0"
JOBS = [(0, episode) for episode in range(6)]


class Ends:
    """A policy of numbers that notes which observations it is shown."""

    def __init__(self) -> None:
        self.inner, self.shown = FixedTokens(), []

    def predict(self, observation: np.ndarray, **_: Any) -> Any:
        self.shown.append(observation)
        return self.inner.predict(observation)


class Sampler:
    """Draws from everyone's randomness, as models of Stable-Baselines3 do once they are seeded."""

    action_space = gym.spaces.Discrete(32)

    def set_random_seed(self, seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        self.action_space.seed(seed)

    def predict(self, observation: np.ndarray, **_: Any) -> Any:
        return np.random.randint(5, 32, len(observation)), None  # noqa: NPY002


def columns(player: Player, jobs: Any = JOBS) -> Any:
    played = list(player.play(jobs))
    names = ("returns", "lengths", "success", "terminated", "truncated")
    return {name: np.concatenate([getattr(p, name) for p in played]).tolist() for name in names}


@pytest.mark.parametrize("record", [False, True])
def test_a_word_and_its_letters_come_to_the_same(record: bool):
    said = columns(Player(SMALL, Fixed(), record=record))
    for num_envs in (1, 4, 9):
        assert columns(Player(SMALL, FixedTokens(), num_envs=num_envs, record=record)) == said


def test_what_is_said_is_kept_only_where_that_is_asked_for():
    for policy in (Fixed(), FixedTokens(), "random-mixture"):
        (played,) = Player(SMALL, policy).play(JOBS)
        assert played.turns is None
        (played,) = Player(SMALL, policy, record=True).play(JOBS)
        assert sum(played.turns.said) == played.lengths.sum()
        assert len(played.turns.sizes) == len(played) == 6


@pytest.mark.parametrize(
    ("env", "policy"),
    [
        (SMALL, FixedTokens()),  # in waves of the batched view
        ("dialgym/TwentyQuestions-8-utterance-v0", "random"),  # of a task's vectorised form
        ("dialgym/SlotFilling-utterance-v0", "handcrafted"),
        ("dialgym/Wordle-20-utterance-v0", "random-mixture"),  # one by one
        (ACTS, "handcrafted"),
    ],
)
def test_dialogues_are_kept_as_they_ended(env, policy):
    assert next(Player(env, policy).play(JOBS)).states is None
    player = Player(env, policy, num_envs=4, record=True, states=True)
    batches = [*player.play(JOBS)]
    states = [state for batch in batches for state in batch.states]
    texts = [text for batch in batches for text in batch.turns.text]
    kept = [player.task.transcript(state, player.learner) for state in states]
    assert [len(lines) for lines in kept] == [n for b in batches for n in b.turns.sizes]
    assert [line.text for lines in kept for line in lines] == texts


def test_a_policy_is_never_shown_the_end_of_a_dialogue():
    """What it sees ends with its own tag, or its utterance under way."""
    policy = Ends()
    columns(Player(SMALL, policy, num_envs=3))
    tag = gym.make(SMALL).observation_space.learner_tag
    for observation in policy.shown:
        for row in observation:
            text = row[row > 0].tolist()
            last = max(i for i, token in enumerate(text) if token == tag)
            assert 1 not in text[last:]


def test_one_that_samples_plays_the_same_again_and_leaves_others_alone():
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    Sampler.action_space.seed(1)
    draws = [random.random(), np.random.rand(), Sampler.action_space.sample()]  # noqa: NPY002
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    Sampler.action_space.seed(1)
    first = dialgym.evaluate(Sampler(), SMALL, 20, (0,), deterministic=False)
    assert [random.random(), np.random.rand(), Sampler.action_space.sample()] == draws  # noqa: NPY002
    again = dialgym.evaluate(Sampler(), SMALL, 20, (0,), deterministic=False)
    np.testing.assert_array_equal(first.overall.lengths, again.overall.lengths)


@pytest.mark.parametrize("policy", [Fixed(), FixedTokens(), "optimal"])
def test_the_dialogue_of_one_episode_can_be_shown(policy: Any):
    player = Player(SMALL, policy, num_envs=1)
    dialogue, played = player.play_one((0, 3), {"word": "sleep"})
    env = gym.make(SMALL.replace("-20", "-20-utterance"))
    env.reset(seed=episode_seed(0, 3), options={"word": "sleep"})
    for line in dialogue.task.transcript(dialogue.state, "system"):
        if line.speaker == "system":
            *_, info = env.step(line.text)
    assert info["transcript"] == dialogue.transcript()
    assert dialogue.turn == played.lengths[0] == info["turn"]


def test_options_hold_for_every_episode():
    (played,) = Player(SMALL, Fixed()).play(JOBS, {"word": "sleep"})
    assert played.success.all()
    (tokens,) = Player(SMALL, FixedTokens(), num_envs=6).play(JOBS, {"word": "sleep"})
    assert tokens.success.all()
    assert [*played.options] == [*tokens.options] == [{"word": "sleep"}] * len(JOBS)


@pytest.mark.parametrize("extra", [{"belief_gain": 1.0}, {"potential": {"entropy": 2.0}}])
def test_what_a_learner_is_paid_beside_the_task_is_no_part_of_a_return(extra):
    plain, paid = (dialgym.evaluate(FixedTokens(), SMALL, 6, (0,), own) for own in ({}, extra))
    assert paid.overall.returns.tolist() == plain.overall.returns.tolist()
    assert paid.score == plain.score is not None


def test_random_is_there_for_every_task():
    from dialgym.tasks.wordle import Wordle

    class Unnamed(Wordle):
        speakers = {"user": Wordle.speakers["user"]}

    played = columns(Player(Unnamed(words=20, constraint="words", guesses="answers"), "random"))
    assert len(set(played["lengths"])) > 1 or played["lengths"][0] == 6
    assert all(r <= 0 for r in played["returns"])


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("branchin", "Did you mean 'branching'"),
        (3, r"reply\(task, state, rng\) -> str, act\(task, state, rng\), or predict\("),
    ],
)
def test_who_cannot_play(policy: Any, message: str):
    with pytest.raises(ValueError, match=message):
        Player(SMALL, policy)


def test_words_or_acts():
    """A name that stands for both speaks, unless its choices are to be kept."""
    assert not Player(ACTS, "handcrafted").chooses_acts
    player = Player(ACTS, "handcrafted", record=True)
    assert player.chooses_acts
    (played,) = player.play(JOBS)
    assert [len(d.actions) for d in played.decisions] == played.lengths.tolist()
    assert episode_seed(*JOBS[2]) == played.seeds[2]


@pytest.mark.parametrize("policy", ["random", Fixed(), FixedTokens()])
def test_each_episode_may_have_options_of_its_own(policy: Any):
    player = Player("Wordle-20-v0", policy, num_envs=4, record=True)
    options = player.task.secrets()[: len(JOBS)]
    played = list(player.play(JOBS, options))
    returns = np.concatenate([part.returns for part in played]).tolist()
    alone = [
        float(part.returns[0])
        for job, own in zip(JOBS, options, strict=True)
        for part in player.play([job], own)
    ]
    assert returns == alone
    with pytest.raises(ValueError, match=r"one for each of 6 episodes; got 5"):
        player.play(JOBS, options[:-1])
