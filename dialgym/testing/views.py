"""A check that a script of utterances gives the same dialogue through every view."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from dialgym.language.tokenizers import END
from dialgym.tasks import Task
from dialgym.testing.act_checks import check_act_views
from dialgym.testing.scripts import random_utterance, require
from dialgym.views.dialogue import Dialogue
from dialgym.views.spaces import token_limit
from dialgym.views.speakers import find_speaker
from dialgym.views.token_env import TokenEnv
from dialgym.views.token_vector_env import TokenVectorEnv
from dialgym.views.two_party import TokenTwoPartyEnv, TwoPartyEnv, UtteranceTwoPartyEnv
from dialgym.views.utterance_env import UtteranceEnv
from dialgym.views.utterance_vector_env import UtteranceVectorEnv


class Played(NamedTuple):
    """The results of a script."""

    total: float
    terminated: bool
    truncated: bool
    success: bool
    transcript: str


def check_views(task: Task, episodes: int = 50, seed: int = 0) -> None:
    """Play random scripts through all views; transcript, return and end must be the same.

    The views are: token and utterance env, each single and batched, and the two-party env at both
    levels with the default simulator as the user; and for each party that has acts the act env,
    single, batched and two-party, whose observations must be the same too.

    Raises:
        AssertionError: two views differ; the message names them, the script and the seed.
    """
    players = make_players(task)
    for episode in range(seed, seed + episodes):
        script, expected = record_script(task, episode)
        for name, play in players.items():
            got = play(script, episode)
            require(
                got == expected,
                task,
                f"the {name} view gave {got}; the rules gave {expected} "
                f"(script {script}, seed {episode})",
            )
    check_act_views(task, episodes, seed)


def record_script(task: Task, seed: int) -> tuple[list[str], Played]:
    """A random dialogue by the rules alone: what the learner said, and what came of it."""
    rng, words = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    learner = task.parties[0]
    dialogue = Dialogue(task, learner, find_speaker(task, learner, None))
    exchange = dialogue.start(rng, None)
    script: list[str] = []
    total = exchange.reward
    while not exchange.over:
        constraint = task.constraint(dialogue.state, learner)
        script.append(random_utterance(task, learner, constraint, words))
        exchange = dialogue.say(script[-1], rng)
        total += exchange.reward
    end = exchange.terminated, exchange.truncated, bool(exchange.success)
    return script, Played(total, *end, dialogue.transcript())


def make_players(task: Task) -> dict[str, Callable[[list[str], int], Played]]:
    """For each view, a function that plays a script with a seed."""
    token, text = TokenEnv(task), UtteranceEnv(task)
    tokens, texts = TokenVectorEnv(task, 1), UtteranceVectorEnv(task, 1)
    both_tokens, both_texts = TokenTwoPartyEnv(task), UtteranceTwoPartyEnv(task)
    return {
        "token": lambda script, seed: _single(token, _spell_all(token, script), seed),
        "utterance": lambda script, seed: _single(text, script, seed),
        "batched token": lambda script, seed: _batched(
            tokens, _arrays(_spell_all(token, script)), seed
        ),
        "batched utterance": lambda script, seed: _batched(texts, ([t] for t in script), seed),
        "two-party token": lambda script, seed: _two_party(both_tokens, script, seed),
        "two-party utterance": lambda script, seed: _two_party(both_texts, script, seed),
    }


def spell(env: Any, party: str, text: str) -> list[int]:
    """The tokens of an utterance with its ``<end>``, unless it is of full length."""
    limit = token_limit(env.task, env.tokenizer, party, party)
    ids = env.tokenizer.encode(text)[:limit]
    return ids if len(ids) == limit else [*ids, END]


def _spell_all(env: TokenEnv, script: list[str]) -> list[int]:
    return [token for text in script for token in spell(env, env.learner, text)]


def _arrays(tokens: Iterable[int]) -> Iterable[np.ndarray]:
    return (np.array([token]) for token in tokens)


def _single(env: Any, actions: Iterable[Any], seed: int) -> Played:
    env.reset(seed=seed)
    total, result = 0.0, None
    for action in actions:
        result = env.step(action)
        total += result[1]
    assert result is not None, "the script is empty"
    _, _, terminated, truncated, info = result
    return Played(
        total, terminated, truncated, info.get("is_success", False), info.get("transcript", "")
    )


def _batched(env: Any, actions: Iterable[Any], seed: int) -> Played:
    env.reset(seed=seed)
    total, result = 0.0, None
    for action in actions:
        result = env.step(action)
        total += float(result[1][0])
    assert result is not None, "the script is empty"
    _, _, terminated, truncated, info = result
    success, transcript = info.get("is_success", [False]), info.get("transcript", [""])
    end = bool(terminated[0]), bool(truncated[0]), bool(success[0])
    return Played(total, *end, str(transcript[0]))


def _two_party(env: TwoPartyEnv, script: list[str], seed: int) -> Played:
    env.reset(seed=seed)
    task, learner = env.task, env.task.parties[0]
    total, said = 0.0, iter(script)
    while env.agents and not any((*env.terminations.values(), *env.truncations.values())):
        party = env.agent_selection
        text = next(said, "") if party == learner else _reply(env, learner)
        at_token_level = isinstance(env, TokenTwoPartyEnv)
        for action in spell(env, party, text) if at_token_level else [text]:
            env.step(action)
            total += env.rewards[learner]
    state = env.dialogue_state
    transcript = "".join(f"{s}: {t}\n" for s, t, _ in task.transcript(state, learner))
    info = env.infos[learner]
    end = env.terminations[learner], env.truncations[learner], info.get("is_success", False)
    return Played(total, *end, transcript)


def _reply(env: TwoPartyEnv, learner: str) -> str:
    assert env.rng is not None
    return find_speaker(env.task, learner, None).reply(env.task, env.dialogue_state, env.rng)
