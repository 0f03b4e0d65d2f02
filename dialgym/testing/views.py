"""A check that a script of utterances gives the same dialogue through every view."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dialgym.language.tokenizers import END
from dialgym.tasks import Task
from dialgym.testing.act_checks import check_act_views
from dialgym.testing.scripts import (
    FirstRow,
    OneSide,
    Played,
    difference,
    play,
    random_utterance,
    require,
)
from dialgym.views.dialogue import Dialogue
from dialgym.views.spaces import token_limit
from dialgym.views.speakers import find_speaker
from dialgym.views.token_env import TokenEnv
from dialgym.views.token_vector_env import TokenVectorEnv
from dialgym.views.two_party import TokenTwoPartyEnv, TwoPartyEnv, UtteranceTwoPartyEnv
from dialgym.views.utterance_env import UtteranceEnv
from dialgym.views.utterance_vector_env import UtteranceVectorEnv


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
        for name, player in players.items():
            fault = difference(player(script, episode), expected)
            message = f"the {name} view {fault} (script {script}, seed {episode})"
            require(not fault, task, message)
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
    return script, Played(total, *end, dialogue.transcript(), [])


def make_players(task: Task) -> dict[str, Callable[[list[str], int], Played]]:
    """For each view, a function that plays a script with a seed."""
    learner = task.parties[0]
    simulator = find_speaker(task, learner, None)

    def reply(env: TwoPartyEnv) -> str:
        assert env.rng is not None
        return simulator.reply(env.task, env.dialogue_state, env.rng)

    def spelled_reply(env: TwoPartyEnv) -> list[int]:
        return spell(env, env.agent_selection, reply(env))

    token = TokenEnv(task)
    tokens, texts = FirstRow(TokenVectorEnv(task, 1)), FirstRow(UtteranceVectorEnv(task, 1))
    both_tokens = OneSide(TokenTwoPartyEnv(task), learner, spelled_reply)
    both_texts = OneSide(UtteranceTwoPartyEnv(task), learner, lambda env: [reply(env)])
    by_token = {"token": token, "batched token": tokens, "two-party token": both_tokens}
    by_text = {
        "utterance": UtteranceEnv(task),
        "batched utterance": texts,
        "two-party utterance": both_texts,
    }

    def spelled(script: list[str]) -> list[int]:
        return [each for text in script for each in spell(token, learner, text)]

    return {
        **{
            name: lambda script, seed, env=env: play(env, spelled(script), seed)  # type: ignore[misc]
            for name, env in by_token.items()
        },
        **{
            name: lambda script, seed, env=env: play(env, script, seed)  # type: ignore[misc]
            for name, env in by_text.items()
        },
    }


def spell(env: Any, party: str, text: str) -> list[int]:
    """The tokens of an utterance with its ``<end>``, unless it is of full length."""
    limit = token_limit(env.task, env.tokenizer, party, party)
    ids = env.tokenizer.encode(text)[:limit]
    return ids if len(ids) == limit else [*ids, END]
