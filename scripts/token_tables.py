"""The beginning of a task's sample dialogue as its token view observes it, index by index."""

import html
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from sample_dialogues import sample, text_of

from dialgym.experiments.samples import SampleDialogue
from dialgym.language.tokenizers import END, PAD, TAGS
from dialgym.registry import Row
from dialgym.rollouts.episodes import episode_seed

HEAD = ("index", "id", "token", "what it is")
SHOWN_FIRST, SHOWN_LAST = 6, 2
"""Text tokens of a long utterance that have a row; those between them share one."""
SPEAKERS = {tag: party for party, tag in TAGS.items()}

Line = tuple[object, object, str, str]


def as_tokens(row: Row, policy: str, seed: int) -> tuple[str, list[Line]]:
    """A sentence on what is observed after an utterance of the learner, and its indices."""
    env: Any = gym.make(row.id("token")).unwrapped
    seen, over = said_once(env, sample(row.id("token"), policy, seed))
    used = int(np.count_nonzero(seen != PAD))
    text = (
        f"What `{row.id('token')}` observes once its learner, the {env.learner}, has said one "
        f"utterance of `{policy}`, seed {seed}: {len(seen)} ids, of which {used} are not `<pad>`. "
        "Each utterance is the tag of its speaker, its tokens, and `<end>`; within an episode "
        "nothing that stands there moves."
    )
    return text + "\n", list(lines_of(env.tokenizer, seen, used, over))


def said_once(env: Any, shown: SampleDialogue) -> tuple[np.ndarray, bool]:
    """The observation after one utterance of the learner, and True if that was all."""
    seen, info = env.reset(seed=episode_seed(shown.job[0], 0))
    said = int(np.count_nonzero(seen == TAGS[env.learner])) - 1  # without the tag that is open
    own = [text_of(line.pieces) for line in shown.utterances if line.own]
    over = False
    for token in (*env.tokenizer.encode(own[said]), END):
        if not info["turn"]:  # the longest utterances have no <end>
            seen, _, terminated, truncated, info = env.step(token)
            over = terminated or truncated
    return seen, over


def lines_of(tokenizer: Any, seen: np.ndarray, used: int, over: bool) -> Iterator[Line]:
    """A line for each index, or for several within a long utterance."""
    tokens, at = tokenizer.tokens, 0
    while at < used:
        party, end = SPEAKERS[int(seen[at])], at + 1
        while end < used and int(seen[end]) not in SPEAKERS:
            end += 1
        opened = end == used and end == at + 1 and not over
        tag = f"tag: the {party} speaks" + (", and its next action comes after it" * opened)
        yield line(at, seen[at], tokens, tag)
        yield from utterance_lines(tokens, seen, at + 1, end, party)
        at = end
    if used < len(seen):
        yield f"{used} to {len(seen) - 1}", PAD, code(tokens[PAD]), "padding"


def utterance_lines(
    tokens: Any, seen: np.ndarray, first: int, end: int, party: str
) -> Iterator[Line]:
    """Lines after a speaker's tag: text, and the end of the utterance."""
    text_end = end - (end > first and int(seen[end - 1]) == END)
    long = text_end - first > SHOWN_FIRST + SHOWN_LAST + 1
    gap = range(first + SHOWN_FIRST, text_end - SHOWN_LAST) if long else range(0)
    for at in range(first, text_end):
        if at not in gap:
            yield line(at, seen[at], tokens, f"text of the {party}")
        elif at == gap[0]:
            yield f"{gap[0]} to {gap[-1]}", "...", "...", f"text of the {party}"
    if text_end < end:
        yield line(text_end, seen[text_end], tokens, f"the {party} has ended its utterance")


def line(at: int, token: Any, tokens: Any, what: str) -> Line:
    return at, int(token), code(tokens[int(token)]), what


def code(token: str) -> str:
    """A token as code in a cell of a table; a space is drawn."""
    return f"<code>{html.escape(token.replace(' ', '␣')).replace('|', '&#124;')}</code>"
