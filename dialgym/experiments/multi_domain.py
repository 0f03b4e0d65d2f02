"""Dialogues over several domains: their environment, and scores of the policies that share one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dialgym.experiments.result import Episodes
from dialgym.registry import Environment, entry_of
from dialgym.rollouts.episodes import episode_seed, policy_rng
from dialgym.tasks.base import SYSTEM
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.multi_domain import MultiDomain
from dialgym.tasks.slot_filling.multi_domain_acts import TOPICS
from dialgym.views.making import split_kwargs
from dialgym.views.two_party import ActTwoPartyEnv

ALL = "all"


def multi_domain_env(
    ids: Sequence[Environment],
    *,
    least: int = 1,
    most: int = 3,
    include: float = 0.6,
    **kwargs: Any,
) -> ActTwoPartyEnv:
    """Make the PettingZoo AEC environment of slot filling in several domains; see `MultiDomain`.

    Its agents are the policies of the domains, which observe and choose what the act view of their
    own id has, and ``topics``; `agent_selection` is whose turn it is. Rewards are each agent's own.
    In the infos at the end ``is_success`` is that of all domains, ``metrics`` has each.

    Args:
        ids: slot-filling ids or tasks, ``dialgym/CamRestaurants-Env1-act-v0``; each of another
            domain.
        least, most, include: as in `MultiDomain`.
        kwargs: settings of the tasks, the same for each, and arguments of the view (`action_masks`,
            `masked_observations`, `render_mode`, `text_info`).

    Raises:
        ValueError: an id or argument is unknown, one is no slot filling, or two have one domain.
    """
    own: dict[str, Any] = {}
    tasks = []
    for entry in map(entry_of, ids):
        own = split_kwargs(entry, ActTwoPartyEnv, kwargs)
        task = own.pop("task")
        if not isinstance(task, SlotFilling):
            raise ValueError(
                f"multi_domain_env: expected ids of slot filling, such as "
                f"dialgym/CamRestaurants-Env1-act-v0; got {entry.id!r}. See `dialgym list`."
            )
        tasks.append(task)
    env = ActTwoPartyEnv(MultiDomain(tasks, least, most, include), **own)
    env.metadata = {**env.metadata, "name": "multi_domain"}
    return env


class Scripted:
    """A domain's policy by rules, in the form of `predict`; it reads the env's state.

    Args:
        env: of `dialgym.multi_domain_env`.
        domain: one of its agents.
        name: a policy of the system's acts, ``handcrafted`` or ``random``.
    """

    def __init__(self, env: ActTwoPartyEnv, domain: str, name: str = "handcrafted") -> None:
        rules: Any = env.task
        self.env, self.domain, self.task = env, domain, rules.domains[domain]
        self.policy = self.task.acts[SYSTEM].policy_named(name)
        self.rng = policy_rng(0, 0)

    def predict(self, observation: Any, deterministic: bool = False) -> tuple[Any, None]:
        """See `Predictor`."""
        dialogue = self.env.dialogue_state.dialogues[self.domain]
        return self.policy.act(self.task, dialogue, self.rng), None


def evaluate_domains(
    manager: Any,
    env: ActTwoPartyEnv,
    episodes: int = 100,
    seed: int = 0,
    deterministic: bool = True,
) -> dict[str, Episodes]:
    """Let a manager of policies play, and score it as a whole and by domain.

    Args:
        manager: of the policies, `agents.acts.gp.topics.PolicyManager`, or what has its `reset`
            and `act`.
        env: of `dialgym.multi_domain_env`.
        episodes: dialogues.
        seed: of their users; the same ones for each manager.
        deterministic: policies take the best act, else draw one.

    Returns:
        By domain the dialogues in which the user had a goal there: return, success and utterances
        of the domain's policy. And as ``all`` those of all agents, `topics` too, where success is
        that in each of the user's domains.
    """
    rows: dict[str, list[Any]] = {name: [] for name in (ALL, *env.possible_agents)}
    for episode in range(episodes):
        env.reset(seed=episode_seed(seed, episode))
        manager.reset()
        returns, utterances = _play(manager, env, deterministic)
        state = env.dialogue_state
        rows[ALL].append(
            (sum(returns.values()), all(state.success.values()), sum(utterances.values()))
        )
        for name, success in state.success.items():
            rows[name].append((returns[name], success, utterances[name]))
    return {name: _episodes(played) for name, played in rows.items() if played}


def _episodes(rows: list[Any]) -> Episodes:
    returns, solved, lengths = (np.array([column]) for column in zip(*rows))
    return Episodes(returns, solved, lengths)


def _play(
    manager: Any, env: ActTwoPartyEnv, deterministic: bool
) -> tuple[dict[str, float], dict[str, int]]:
    """Play a dialogue: the return of each agent, and its number of utterances."""
    returns, utterances = dict.fromkeys(env.agents, 0.0), dict.fromkeys(env.agents, 0)
    while not any(env.terminations.values()):
        agent = env.agent_selection
        domain = None if agent == TOPICS else agent
        belief = env.task.acts[agent].observe(env.dialogue_state)
        _, act = manager.act(domain, belief, env.action_masks(), deterministic)
        env.step(env.task.acts[TOPICS].names.index(act) if domain is None else act)
        utterances[agent] += 1
        for name, reward in env.rewards.items():
            returns[name] += reward
    return returns, utterances
