"""A check that the act views of a task agree, and that its acts keep to what they declare."""

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dialgym.simulators import Speaker, shown_to
from dialgym.tasks import ActPolicy, ActSpeaker, Task
from dialgym.testing.scripts import (
    FirstRow,
    OneSide,
    Played,
    difference,
    play,
    random_action,
    require,
)
from dialgym.views.act_env import ActEnv, act_spaces
from dialgym.views.act_vector_env import ActVectorEnv
from dialgym.views.dialogue import Dialogue
from dialgym.views.speakers import find_speaker, other_party
from dialgym.views.two_party import ActTwoPartyEnv

Players = dict[str, Callable[[Sequence[Any], int], Played]]
"""Functions that play actions with a seed, by view."""


def check_acts(task: Task, state: Any, rng: np.random.Generator, seed: int) -> None:
    """Hold the acts of each party to their contract in one state of a dialogue.

    Raises:
        AssertionError: a promise is broken; the message says which, where, and what came.
    """
    for party, acts in task.acts.items():
        where = f"acts of {party} (seed {seed})"
        require(len(set(acts.names)) == len(acts.names) > 0, task, f"{where}: names {acts.names}")
        space, _ = act_spaces(acts)
        seen, again = acts.observe(state), acts.observe(state)
        if seen.dtype != np.float32 or not space.contains(seen):
            raise _broken(task, f"{where}: observe() gave {seen!r}, which is not in {space}")
        if not np.array_equal(seen, again) or np.shares_memory(seen, again):
            raise _broken(task, f"{where}: two calls of observe() gave different arrays, or one")
        if party == task.speaker(state):
            _check_choice(task, party, state, rng, where)


def _check_choice(task: Task, party: str, state: Any, rng: np.random.Generator, where: str) -> None:
    """The mask, and what each policy of a party that has the floor chooses and says."""
    acts = task.acts[party]
    mask, (_, actions) = acts.mask(state), act_spaces(acts)
    if mask.shape != (len(acts.names),) or mask.dtype != bool:
        raise _broken(task, f"{where}: expected ({len(acts.names)},) bool of mask(); got {mask!r}")
    require(acts.multiple or mask.any(), task, f"{where}: mask() leaves nothing to choose")
    before = pickle.dumps(state)
    for name in acts.policies:
        policy = acts.policy_named(name)
        action = policy.act(task, shown_to(policy, task, state), rng)
        if not actions.contains(action):
            raise _broken(task, f"{where}: policy {name!r} chose {action!r}; expected {actions}")
        text = acts.text(state, action, rng)
        require(isinstance(text, str), task, f"{where}: text() of {action!r} gave {text!r}")
    require(pickle.dumps(state) == before, task, f"{where}: choosing an act changed the state")


def _broken(task: Task, message: str) -> AssertionError:
    """For messages with arrays, which are slow to write."""
    return AssertionError(f"{task.name}: {message}")


def check_act_views(task: Task, episodes: int, seed: int) -> None:
    """Play random actions of each party that has acts through all act views.

    Observations, return, end and transcript must be those of the rules. The other party is played
    by the first of its act policies, or by its default simulator where it has no acts.

    Raises:
        AssertionError: two views differ; the message names them, the script and the seed.
    """
    for party in task.acts:
        other = _other_policy(task, party)
        simulator = None if other is None else ActSpeaker(other)
        players = _players(task, party, simulator, other)
        for episode in range(seed, seed + episodes):
            actions, expected = record_actions(task, party, simulator, episode)
            for name, player in players.items():
                fault = difference(player(actions, episode), expected)
                script = [np.asarray(action).tolist() for action in actions]
                message = (
                    f"the {name} view of the {party} {fault} (actions {script}, seed {episode})"
                )
                require(not fault, task, message)


def _other_policy(task: Task, party: str) -> ActPolicy | None:
    acts = task.acts.get(other_party(task, party))
    return None if acts is None else acts.policy_named(next(iter(acts.policies)))


def record_actions(
    task: Task, party: str, simulator: Speaker | None, seed: int
) -> tuple[list[Any], Played]:
    """A random dialogue by the rules alone: what the party chose, and what came of it."""
    rng, choices = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    acts, actions = task.acts[party], list[Any]()
    dialogue = Dialogue(task, party, find_speaker(task, party, simulator))
    exchange = dialogue.start(rng, None)
    seen, total = [acts.observe(dialogue.state)], 0.0  # no view rewards what came before
    while not exchange.over:
        actions.append(random_action(acts.mask(dialogue.state), acts.multiple, choices))
        exchange = dialogue.say(acts.say(dialogue.state, actions[-1], rng), rng)
        seen.append(acts.observe(dialogue.state))
        total += exchange.reward
    end = exchange.terminated, exchange.truncated, bool(exchange.success)
    return actions, Played(total, *end, dialogue.transcript(), seen)


def _players(task: Task, party: str, simulator: Speaker | None, other: ActPolicy | None) -> Players:
    options: dict[str, Any] = {"learner": party, "simulator": simulator}
    single, batch = ActEnv(task, **options), FirstRow(ActVectorEnv(task, 1, **options))
    players: Players = {
        "act": lambda actions, seed: play(single, actions, seed),
        "batched act": lambda actions, seed: play(batch, actions, seed),
    }
    if other is not None:
        side = OneSide(
            ActTwoPartyEnv(task),
            party,
            lambda env: [other.act(env.task, env.dialogue_state, env.rng)],  # type: ignore[arg-type]
        )
        players["two-party act"] = lambda actions, seed: play(side, actions, seed)
    return players
