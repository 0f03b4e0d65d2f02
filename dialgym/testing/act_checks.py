"""A check that the act views of a task agree, and that its acts keep to what they declare."""

import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dialgym.simulators import Speaker, shown_to
from dialgym.tasks import ActPolicy, ActSpeaker, Task
from dialgym.testing.scripts import require
from dialgym.views.act_env import ActEnv, act_spaces
from dialgym.views.act_vector_env import ActVectorEnv
from dialgym.views.dialogue import Dialogue
from dialgym.views.speakers import find_speaker, other_party
from dialgym.views.two_party import ActTwoPartyEnv

Actions = Sequence[Any]


class ActsPlayed(NamedTuple):
    """Result of a script of actions, and the learner's observations."""

    total: float
    terminated: bool
    truncated: bool
    success: bool
    transcript: str
    seen: list[np.ndarray]  # (B,) float32 each: at the beginning and after each action


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
            for name, play in players.items():
                fault = _difference(play(actions, episode), expected)
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
) -> tuple[list[Any], ActsPlayed]:
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
    return actions, ActsPlayed(total, *end, dialogue.transcript(), seen)


def random_action(
    mask: np.ndarray, multiple: bool, rng: np.random.Generator, wild: float = 0.2
) -> Any:
    """With probability `wild` any action, else one that the mask allows."""
    allowed = np.ones_like(mask) if rng.random() < wild else mask
    if multiple:
        return (allowed & (rng.random(len(mask)) < 0.5)).astype(np.int8)
    return int(rng.choice(np.flatnonzero(allowed)))


def _players(
    task: Task, party: str, simulator: Speaker | None, other: ActPolicy | None
) -> dict[str, Callable[[Actions, int], ActsPlayed]]:
    """For each view, a function that plays actions with a seed."""
    options: dict[str, Any] = {"learner": party, "simulator": simulator}
    single, batch = ActEnv(task, **options), ActVectorEnv(task, 1, **options)
    players: dict[str, Callable[[Actions, int], ActsPlayed]] = {
        "act": lambda actions, seed: _play(single, actions, seed),
        "batched act": lambda actions, seed: _play(_FirstRow(batch), actions, seed),
    }
    if other is not None:
        both = ActTwoPartyEnv(task)
        players["two-party act"] = lambda actions, seed: _play(
            _OneSide(both, party, other), actions, seed
        )
    return players


def _play(env: Any, actions: Actions, seed: int) -> ActsPlayed:
    seen, total = [env.reset(seed=seed)[0]], 0.0
    result: tuple[Any, ...] = ()
    for action in actions:
        result = env.step(action)
        seen.append(result[0])
        total += result[1]
    assert result, "there are no actions"
    _, _, terminated, truncated, info = result
    success, transcript = info.get("is_success", False), info.get("transcript", "")
    return ActsPlayed(total, terminated, truncated, success, transcript, seen)


class _FirstRow:
    """A batch of one dialogue in the form of a single env."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def reset(self, seed: int) -> tuple[np.ndarray, dict[str, Any]]:
        return self.env.reset(seed=seed)[0][0], {}

    def step(self, action: Any) -> tuple[Any, ...]:
        seen, reward, terminated, truncated, info = self.env.step(np.array([action]))
        last = {name: info[name][0] for name in ("is_success", "transcript") if name in info}
        return seen[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), last


class _OneSide:
    """One side of a two-party env in the form of a single env; a policy plays the other."""

    def __init__(self, env: ActTwoPartyEnv, party: str, other: ActPolicy) -> None:
        self.env, self.party, self.other = env, party, other

    def reset(self, seed: int) -> tuple[np.ndarray, dict[str, Any]]:
        self.env.reset(seed=seed)
        self._let_other_play()
        return self.env.observe(self.party), {}

    def step(self, action: Any) -> tuple[Any, ...]:
        env, party = self.env, self.party
        env.step(action)
        reward = env.rewards[party] + self._let_other_play()
        lines = env.task.transcript(env.dialogue_state, party)
        info = {"transcript": "".join(f"{s}: {t}\n" for s, t, _ in lines)} if self._over() else {}
        success = env.infos[party].get("is_success", False)
        end = env.terminations[party], env.truncations[party]
        return env.observe(party), reward, *end, {**info, "is_success": success}

    def _let_other_play(self) -> float:
        env, reward = self.env, 0.0
        while not self._over() and env.agent_selection != self.party:
            env.step(self.other.act(env.task, env.dialogue_state, env.rng))  # type: ignore[arg-type]
            reward += env.rewards[self.party]
        return reward

    def _over(self) -> bool:
        return any((*self.env.terminations.values(), *self.env.truncations.values()))


def _difference(got: ActsPlayed, expected: ActsPlayed) -> str:
    """The differences in words; nothing where all is the same."""
    for at, (own, right) in enumerate(zip(got.seen, expected.seen)):
        if not np.array_equal(own, right):
            return f"observed {own} after {at} actions; the rules gave {right}"
    if abs(got.total - expected.total) > 1e-9 or got[1:5] != expected[1:5]:
        return f"gave {got[:5]}; the rules gave {expected[:5]}"
    return ""
