"""Dialogues that ConvLab-2 itself has played, and the world that it played them in."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialgym.tasks.multiwoz.agenda import AgendaItem
from dialgym.tasks.multiwoz.data import World, load_world
from dialgym.tasks.multiwoz.dialogue import Rules
from dialgym.tasks.multiwoz.dialogue_state import MultiWOZState
from dialgym.tasks.multiwoz.goal_form import parse_goal
from dialgym.tasks.multiwoz.types import Acts, DialogueAct, MultiWOZGoal

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "convlab2"
TAXI = {"car type": "taxi_types", "phone": "taxi_phone"}
"""The slots of taxis that the original's tracker calls otherwise."""


def world() -> World:
    """The database and goal model that the dialogues were played with; skips without them."""
    if not FOLDER.exists():
        pytest.skip(f"no real data at {FOLDER}")
    return load_world(FOLDER)


def summary() -> dict[str, Any]:
    """Means and intervals over 2,000 dialogues of the original."""
    if not FOLDER.exists():
        pytest.skip(f"no real data at {FOLDER}")
    return json.loads((FOLDER / "traces" / "summary.json").read_text("utf-8"))


def recorded(name: str) -> Iterator[dict[str, Any]]:
    """The dialogues of a file of traces."""
    with gzip.open(FOLDER / "traces" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def goal(dialogue: dict[str, Any]) -> MultiWOZGoal:
    return parse_goal(dialogue["goal"])


def acts(written: list[list[str]]) -> Acts:
    return tuple([DialogueAct(*act) for act in written])


def stack(written: list[list[str]]) -> list[AgendaItem]:
    """An agenda, from `general-bye`, none, none."""
    return [AgendaItem(*name.split("-"), slot, value) for name, slot, value in written]


def belief(turn: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Domain -> slot -> value, of searches and bookings."""
    return {
        domain: parts.get("semi", {}) | {s: v for s, v in parts.get("book", {}).items() if v}
        for domain, parts in turn["belief_state"].items()
    }


def requests(state: MultiWOZState) -> dict[str, set[str]]:
    """The requests of a belief, by the names of the original."""
    return {
        domain: {TAXI.get(slot, slot) if domain == "taxi" else slot for slot in slots}
        for domain, slots in state.belief.requests.items()
    }


def play(
    rules: Rules, goal: MultiWOZGoal, seed: int, user: Any = None, system: Any = None
) -> tuple[MultiWOZState, float, list[Acts]]:
    """A dialogue of the rules' own user and system, or of others: state, return, utterances."""
    rng = np.random.default_rng(seed)
    user, system = user or rules.user, system or rules.system
    state, total, said = rules.begin(goal, rng), 0.0, []
    while True:
        said.append(user.acts(state, rng))
        total += sum(rules.user_turn(state, said[-1], rng).components.values())
        if state.ended:
            return state, total, said
        said.append(system.acts(state.belief, rng))
        rules.system_turn(state, said[-1], rng)
