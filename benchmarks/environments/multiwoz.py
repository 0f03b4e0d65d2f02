"""Queries, goals and dialogues of a city, to measure their speed."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.environments.workloads import Work
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.database import clock
from dialgym.tasks.multiwoz.dialogue import Rules
from dialgym.tasks.multiwoz.ontology import UNCONSTRAINED

GOALS, DIALOGUES = 300, 20
"""Number of goals that queries are taken from, and of dialogues at a time."""
ACT_VIEW, ACT_DIALOGUES = "dialgym/MultiWOZ-act-v0", 100
TABLED = ("attraction", "hotel", "restaurant", "train")


def queries(world: World, scan: bool = False) -> Work:
    """Searches for what drawn goals constrain; with `scan`, row by row."""
    rng = np.random.default_rng(0)
    goals = [world.draw_goal(rng) for _ in range(GOALS)]
    wanted = [(d, part.info) for g in goals for d, part in g.domains.items() if d in TABLED]
    wanted = wanted[:20] if scan else wanted

    def search() -> int:
        for domain, constraints in wanted:
            if scan:
                rows = world.database.rows(domain)
                [row for row in rows if all(_meets(row, s, v) for s, v in constraints.items())]
            else:
                world.database.find(domain, constraints)
        return len(wanted)

    return search


def _meets(row: Mapping[str, str], slot: str, value: str) -> bool:
    cell = row.get(slot, "?").strip().lower()
    if value in UNCONSTRAINED or cell == "?":
        return True
    if slot not in ("leaveAt", "arriveBy"):
        return cell == value.strip().lower()
    asked, known = clock(value) or 0, clock(cell) or 0
    return asked <= known if slot == "leaveAt" else known <= asked


def goals(world: World) -> Work:
    """Goals drawn."""
    rng = np.random.default_rng(0)

    def draw() -> int:
        for _ in range(GOALS):
            world.draw_goal(rng)
        return GOALS

    return draw


def act_turns(texts: bool) -> Work:
    """Turns of the act view with acts chosen beforehand: what sampling costs without a network."""
    env: Any = gym.make(ACT_VIEW, text_info=texts, disable_env_checker=True).unwrapped
    system, rng = env.acts.policy_named("rule"), np.random.default_rng(0)
    played: list[list[Any]] = []
    for seed in range(ACT_DIALOGUES):
        played.append([])
        env.reset(seed=seed)
        over = False
        while not over:
            played[-1].append(system.act(env.task, env.dialogue.state, rng))
            _, _, terminated, truncated, _ = env.step(played[-1][-1])
            over = terminated or truncated

    def play() -> int:
        for seed, actions in enumerate(played):
            env.reset(seed=seed)
            for action in actions:
                env.action_masks()
                env.step(action)
        return sum(map(len, played))

    return play


def dialogues(world: World) -> Work:
    """Dialogues on acts of the rule system with the agenda user, goals included."""
    rng, rules = np.random.default_rng(0), Rules(world)

    def hold() -> int:
        for _ in range(DIALOGUES):
            state = rules.begin(world.draw_goal(rng), rng)
            while not state.ended:
                rules.user_turn(state, rules.user.acts(state, rng), rng)
                if not state.ended:
                    rules.system_turn(state, rules.system.acts(state.belief, rng), rng)
        return DIALOGUES

    return hold
