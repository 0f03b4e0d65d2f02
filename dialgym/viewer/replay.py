"""Replay of stored dialogues, for facts that are not stored: parts of rewards, and masks.

Seed, options and utterances give the same dialogue again; for each turn the rules then give the
parts of its reward, the possible utterances, and the entropy of what is hidden.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.datasets import Dataset
from dialgym.io.files import parse_json
from dialgym.language import AnyText, Constraint
from dialgym.registry import entry_of
from dialgym.rollouts.player import make_dialogue
from dialgym.tasks import ExactPosterior, PartyActs, Task
from dialgym.tasks.posterior import entropy
from dialgym.viewer.lines import rounded
from dialgym.views.dialogue import Dialogue

MOST_SHOWN = 60  # characters of an utterance whose masks are shown


def replayed(one: Dataset) -> dict[str, Any]:
    """Replay a dialogue.

    Args:
        one: a dataset of one row.

    Returns:
        ``same``: whether it went as it is stored; ``rewarded``: whether its rewards are those of
        the rules (imported dialogues bring their own); ``told``: the places of what the learner
        was told in private; ``turns``: for each place of the learner's utterances `components`,
        `allowed` (by character), `bits` (entropy of what is hidden, before the turn), `act` and
        `acts`, as far as the task has them.

    Raises:
        ValueError: its environment is not here, or not to be trusted.
    """
    row = one[0]
    env_id, settings = one.environment()
    dialogue = make_dialogue(entry_of(env_id), {**settings, "learner": row["learner"]})
    notes = dict(_notes(dialogue, row))
    lines = dialogue.task.transcript(dialogue.state, dialogue.learner)
    return {
        "same": [line.text for line in lines] == [turn["text"] for turn in row["turns"]],
        "rewarded": all("components" in note for note in notes.values()),
        "told": [position for position, line in enumerate(lines) if line.private],
        "turns": notes,
    }


def _notes(dialogue: Dialogue, row: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Replay a stored dialogue: positions of the learner's utterances, and notes about each."""
    task, learner, rng = dialogue.task, dialogue.learner, np_random(int(row["seed"]))[0]
    exchange = dialogue.start(rng, parse_json(row["options"] or "{}", "options"))
    chosen = _Chosen(task.acts.get(learner), row)
    said = [(position, turn) for position, turn in enumerate(row["turns"]) if turn["said"]]
    for number, (position, turn) in enumerate(said):
        if exchange.over:
            return
        state, text = dialogue.state, turn["text"]
        note: dict[str, Any] = {"allowed": allowed(task, state, learner, text)}
        note |= {"bits": bits(task, state, learner), **chosen.decision(number)}
        exchange = dialogue.say(text, rng)
        if isclose(exchange.reward, turn["reward"], abs_tol=1e-6):
            note["components"] = rounded(exchange.components)
        yield position, note


def allowed(task: Task, state: Any, party: str, text: str) -> list[dict[str, Any]] | None:
    """Possible characters at each position of a text; None if any text is possible.

    `next` are the characters, None for any; `end` is whether the utterance could have ended there.
    """
    constraint = task.constraint(state, party)
    return None if isinstance(constraint, AnyText) else list(_steps(constraint, text))


def _steps(constraint: Constraint, text: str) -> Sequence[dict[str, Any]]:
    steps, state = [], constraint.start
    for char in [*text[:MOST_SHOWN], ""]:
        foreseen = constraint.choices(state)
        known = None if foreseen is None else sorted(set(foreseen))
        if known is not None:
            known = [each for each in known if constraint.advance(state, each) is not None]
        steps.append(
            {
                "char": char,
                "next": None if known is None else "".join(known),
                "end": constraint.accepts(state),
            }
        )
        state = constraint.advance(state, char) if char else None
        if state is None:
            break
    return steps


def bits(task: Task, state: Any, learner: str) -> float | None:
    """Entropy of what is hidden from the learner, where the task has an exact posterior."""
    if not isinstance(task, ExactPosterior) or learner != task.parties[0]:
        return None
    try:
        return float(entropy(task.posterior(state)))
    except ValueError:
        return None


class _Chosen:
    """The acts that were chosen in a stored dialogue, by name; none where words were.

    Args:
        acts: of the learner.
        row: the dialogue.
    """

    def __init__(self, acts: PartyActs | None, row: Mapping[str, Any]) -> None:
        self.names: Sequence[str] = [] if acts is None else acts.names
        self.actions, self.masks = row.get("actions") or [], row.get("action_masks") or []

    def decision(self, number: int) -> dict[str, Any]:
        """The chosen act and the possible ones at a turn of the learner."""
        if number >= len(self.actions) or not self.names:
            return {}
        mask = np.array(self.masks[number], bool)
        if len(mask) != len(self.names):
            return {}
        several = len(self.actions[number]) == len(self.names) > 1
        action = np.array(self.actions[number])
        indices = np.flatnonzero(action) if several else action
        act = ", ".join(self.names[int(index)] for index in indices)
        return {"act": act, "acts": [self.names[int(i)] for i in np.flatnonzero(mask)]}
