"""Several domains in one dialogue: a user with a goal in each, and a policy for each of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dialgym.errors import unknown
from dialgym.language import Utterance
from dialgym.language.acts import NULL, Act, Hypotheses, SlotValue, print_act, print_hypotheses
from dialgym.rewards import Components
from dialgym.tasks.acts import PartyActs
from dialgym.tasks.base import SYSTEM, USER, Facts, Outcome, Task
from dialgym.tasks.batch import add
from dialgym.tasks.corpora import BUILT_IN
from dialgym.tasks.findings import Findings
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, TYPE
from dialgym.tasks.slot_filling.findings import findings_of_domains
from dialgym.tasks.slot_filling.languages import read_notation
from dialgym.tasks.slot_filling.multi_domain_acts import (
    ASK,
    BYE,
    HELLO,
    TOPICS,
    DomainActs,
    TopicActs,
    spoken,
)
from dialgym.tasks.slot_filling.task import SlotFilling
from dialgym.tasks.slot_filling.types import SlotFillingState

Generator = np.random.Generator
TOPIC = "topic"
"""The slot by which the user says which one."""
HIDDEN_FROM_SYSTEM = ("wanted", "naming", "user_lines")
"""Attributes of a state that no agent of the system is told."""
KNOWN = 0.5
"""The topic is known above this probability."""


@dataclass(slots=True)
class MultiDomainState:
    """A dialogue."""

    dialogues: dict[str, SlotFillingState]  # of each domain, also of those never talked about
    wanted: tuple[str, ...]  # the domains in which the user has goals, in its order
    evidence: np.ndarray  # (n,) float64: how likely the act that was read last means each alone
    topic: str | None = None  # the domain that the system takes it to talk about
    success: dict[str, bool] = field(default_factory=dict)  # of the domains that are over
    attempts: int = 0  # utterances of `TOPICS`
    lines: list[Utterance] = field(default_factory=list)  # what the system has said and heard
    user_speaks: bool = False
    naming: str = ""  # the user's next text, where that answers `TOPICS`
    user_lines: list[Utterance] = field(default_factory=list)  # what the user has said and heard

    @property
    def current(self) -> str:
        """The domain that the user is talking about; empty where all of its domains are over."""
        return next((domain for domain in self.wanted if domain not in self.success), "")

    def copy(self) -> "MultiDomainState":
        """An independent copy; the array is shared because nothing writes into it."""
        dialogues = {name: dialogue.copy() for name, dialogue in self.dialogues.items()}
        success, lines, user_lines = self.success.copy(), self.lines.copy(), self.user_lines.copy()
        return replace(
            self, dialogues=dialogues, success=success, lines=lines, user_lines=user_lines
        )


class MultiDomain(Task):
    """Help a user who wants something in several domains, one after the other: PyDial's simulation.

    The parties are the policies of the domains, by the domains' names, and `topics`, which speaks
    while the topic is not known: it says hello, asks for the topic, or hangs up. The simulated user
    belongs to the rules. It begins with its first domain, and names that only when it is asked
    to, ``inform(topic="CamRestaurants")``. Once it has what it wants there it goes on with its next
    domain, in place of a goodbye; its goodbye in the last one ends the dialogue. As in PyDial, so
    does a goodbye of the system, whichever policy says it; and so does the limit of turns of a
    domain, or as many utterances of `topics`.

    The topic is read from what the system hears. An act can mean each domain that is not over yet
    and that has all its slots and values: a topic is known if more than half of what was heard can
    mean no other, or if one domain is left. It stays until the domain is over.

    A domain is tracked, observed and rewarded as in `SlotFilling`. `topics` observes of each domain
    how likely it is what the act that was read last can only mean, and of each whether it is not
    over yet; last, the share of its utterances that are used. Each of these costs it ``turn``, but
    for a greeting at the beginning. With one domain the topic is always known, and the dialogue is
    that of `SlotFilling`.

    Args:
        domains: the domains, each also as a pair of a name and the domain; no two have one name.
        least, most: number of domains in which the user has goals.
        include: how likely it has one in each further domain, from `least` to `most`.

    Options of reset: ``domains``, names in the user's order; ``goals``, by domain the options of
    `SlotFilling`.

    Raises:
        ValueError: two domains have one name, or a number is impossible.

    Source: Ultes et al. 2017, PyDial: A multi-domain statistical dialogue system toolkit, whose
    simulation draws 1 to 3 domains with 0.6.
    """

    name = "MultiDomain"
    version = SlotFilling.version
    options = ("domains", "goals")

    def __init__(
        self,
        domains: Sequence[SlotFilling | tuple[str, SlotFilling]],
        least: int = 1,
        most: int = 3,
        include: float = 0.6,
    ) -> None:
        named = [d if isinstance(d, tuple) else (domain_name(d), d) for d in domains]
        names = [name for name, _ in named]
        self.domains = dict(named)
        self.agents = (*self.domains, TOPICS)
        if not domains or len(self.domains) < len(domains) or TOPICS in self.domains:
            raise ValueError(f"{self.name}: expected domains with a name each; got {names}.")
        if not (1 <= least <= min(most, len(domains)) and 0 <= include <= 1):
            raise ValueError(
                f"{self.name}: expected 1 <= least <= most, at most {len(domains)} domains, and a "
                f"probability include; got least={least!r}, most={most!r}, include={include!r}."
            )
        self.least, self.most, self.include = least, most, include
        tasks = list(self.domains.values())
        self.turns = max(task.turns for task in tasks)
        self.turn_cost = tasks[0].rewards.turn
        self.stand_in = BUILT_IN if any(task.stand_in for task in tasks) else None
        self.agent_acts: Mapping[str, PartyActs] = {
            **{name: DomainActs(name, task) for name, task in self.domains.items()},
            TOPICS: TopicActs(tuple(self.domains), self.turns),
        }
        self._set_parties()

    def _set_parties(self) -> None:
        self.parties = self.agents  # type: ignore[misc]
        self.acts: Mapping[str, PartyActs] = self.agent_acts
        self.facts = self._facts()

    def _facts(self) -> Facts:
        tasks = self.domains.values()
        turns, own = sum(task.turns for task in tasks) + self.turns, self.turn_cost * self.turns
        bounds = {name: task.facts.returns[SYSTEM] for name, task in self.domains.items()}
        bounds[TOPICS] = own, own
        charsets = [task.facts.charset for task in tasks]
        return Facts(
            turn_limit=turns,
            longest=_most(task.facts.longest for task in tasks),
            ordinary=_most(task.facts.ordinary or task.facts.longest for task in tasks),
            heard={p: {SYSTEM: turns + 1, USER: 2 * turns + 1} for p in self.agents},
            returns={name: (min(low, 0.0), max(high, 0.0)) for name, (low, high) in bounds.items()},
            charset="".join(sorted(set().union(ASK, *self.domains, *charsets))),
            hidden=dict.fromkeys(self.agents, HIDDEN_FROM_SYSTEM),
            may_end=self.agents,
            components={
                **{name: task.rewards.components for name, task in self.domains.items()},
                TOPICS: ("turn",),
            },
            metrics=tuple([f"success_{name}" for name in self.domains]),
        )

    def initial(self, rng: Generator, options: Mapping[str, Any] | None = None) -> MultiDomainState:
        state = self.begin(rng, options)
        while state.user_speaks:
            self._user_says(state, self.planned(state), rng, {})
        return state

    def begin(self, rng: Generator, options: Mapping[str, Any] | None = None) -> MultiDomainState:
        """A state before the user has said anything."""
        fixed, goals = self._fixed(self.check_options(options))
        wanted = self._draw(rng) if fixed is None else tuple(dict.fromkeys(fixed))
        if not wanted:
            raise ValueError(f"option 'domains' of {self.name}: expected at least one; got none.")
        dialogues = {n: task.initial(rng, goals.get(n)) for n, task in self.domains.items()}
        state = MultiDomainState(dialogues, wanted, np.zeros(len(dialogues)))
        if len(self.domains) == 1:
            state.topic = state.current
            state.lines += dialogues[state.current].heard_by_system
            state.user_lines += dialogues[state.current].heard_by_user
            state.user_speaks = True
        return state

    def _fixed(
        self, options: Mapping[str, Any]
    ) -> tuple[tuple[str, ...] | None, Mapping[str, Any]]:
        """The domains that options fix, None where they fix none, and goals by domain."""
        fixed, goals = options.get("domains"), options.get("goals")
        listed = isinstance(fixed, Iterable) and not isinstance(fixed, str)
        for name, value, fits, form in (
            ("domains", fixed, listed, "a list of names"),
            ("goals", goals, isinstance(goals, Mapping), "a mapping from names to goals"),
        ):
            if value is not None and not fits:
                raise ValueError(
                    f"option {name!r} of {self.name}: expected {form}; got {value!r:.60}."
                )
        domains = None if fixed is None else tuple(fixed)
        for name in (*(domains or ()), *(goals or ())):
            if not isinstance(name, str) or name not in self.domains:
                raise unknown("domain", name, self.domains, f"reset of {self.name}")
        return domains, goals or {}

    def _draw(self, rng: Generator) -> tuple[str, ...]:
        """The domains of a user, in its order; nothing is drawn where there is one."""
        names, drawn = list(self.domains), list[str]()
        if len(names) == 1:
            return tuple(names)
        for place in rng.permutation(len(names)).tolist():
            if len(drawn) < self.least or (len(drawn) < self.most and rng.random() < self.include):
                drawn.append(names[place])
        return tuple(drawn)

    def speaker(self, state: MultiDomainState) -> str:
        return state.topic or TOPICS

    def transcript(self, state: MultiDomainState, party: str) -> Sequence[Utterance]:
        return state.lines

    def observed(self, state: MultiDomainState, party: str) -> MultiDomainState:
        """Without what the user wants, and what each domain keeps from the system."""
        seen: MultiDomainState = super().observed(state, party)
        seen.dialogues = {n: t.observed(seen.dialogues[n], SYSTEM) for n, t in self.domains.items()}
        return seen

    def speak(self, state: MultiDomainState, text: str, rng: Generator) -> Outcome:
        parts: dict[str, Components] = {agent: {} for agent in self.agents}
        over = self._system_says(state, text, rng, parts)
        while state.user_speaks:
            over = self._user_says(state, self.planned(state), rng, parts)
        return self._outcome(state, over, parts)

    def _outcome(
        self, state: MultiDomainState, over: bool, parts: dict[str, Components]
    ) -> Outcome:
        """The rewards of each agent; at the end with the failures of what is not over yet."""
        if not over:
            return Outcome.of(parts)
        for name in state.wanted:
            if name not in state.success:
                state.success[name] = False
                failure = self.domains[name].rewards.failure
                parts[name] = {**parts[name], **({"failure": failure} if failure else {})}
        return Outcome.of(parts, True, False, all(state.success.values()))

    def _system_says(
        self, state: MultiDomainState, text: str, rng: Generator, parts: dict[str, Components]
    ) -> bool:
        """Return True if the dialogue is over with it; else it is the user's turn."""
        if state.topic is not None:
            dialogue = state.dialogues[state.topic]
            outcome = self.domains[state.topic].speak(dialogue, text, rng)
            state.lines.append(dialogue.heard_by_system[-1])
            state.user_lines.append(dialogue.heard_by_user[-1])
            _credit(state, state.topic, outcome, parts)
            state.user_speaks = not outcome.terminated
            return outcome.terminated
        if state.lines or text != spoken(HELLO):
            parts[TOPICS] = {"turn": self.turn_cost}
        state.lines.append(Utterance(SYSTEM, text))
        state.user_lines.append(Utterance(SYSTEM, text))
        state.attempts += 1
        if text == spoken(BYE) or state.attempts >= self.turns:
            return True
        self._plan_name(state, text == spoken(ASK))
        state.user_speaks = True
        return False

    def _plan_name(self, state: MultiDomainState, asked: bool) -> None:
        """Plan an answer to the question for the topic, or else a greeting.

        A domain that has not begun yet begins in place of the greeting.
        """
        if asked:
            state.naming = print_act(Act("inform", (SlotValue(TOPIC, state.current),)))
        elif not state.dialogues[state.current].user_speaks:
            state.naming = spoken(HELLO)

    def planned(self, state: MultiDomainState) -> str:
        """The next text of the simulated user, where it has its turn."""
        return state.naming or state.dialogues[state.current].planned[0]

    def _user_says(
        self, state: MultiDomainState, text: str, rng: Generator, parts: dict[str, Components]
    ) -> bool:
        """Let the user say `text`; return True if that ends the last of its domains.

        It has its turn again where it has told the topic or is done with a domain, and has
        something to say in the domain that is next.
        """
        over = False
        if state.naming:
            self._hear_name(state, text, rng)
        else:
            over = self._go_on(state, text, rng, parts)
        state.user_speaks = not over and state.dialogues[state.current].user_speaks
        return over

    def _hear_name(self, state: MultiDomainState, text: str, rng: Generator) -> None:
        """Hear what the user answers to `TOPICS`: it tells the topic, and nothing else."""
        state.naming = ""
        heard = self.domains[state.current].channel.hear(read_notation(text) or NULL, rng)
        state.lines.append(Utterance(USER, print_hypotheses(heard)))
        state.user_lines.append(Utterance(USER, text))
        self._read(state, heard)

    def _go_on(
        self, state: MultiDomainState, text: str, rng: Generator, parts: dict[str, Components]
    ) -> bool:
        """Let the user speak about its domain; return True if that ends the last of them."""
        name = state.current
        dialogue = state.dialogues[name]
        outcome, heard = self.domains[name].hear_user(dialogue, text, rng)
        _credit(state, name, outcome, parts)
        last = len(state.success) == len(state.wanted)
        state.user_lines.append(Utterance(USER, text))
        if last or not outcome.terminated:
            state.lines.append(dialogue.heard_by_system[-1])
        if outcome.terminated:
            state.topic = None
        else:
            self._read(state, heard)
        return last

    def _read(self, state: MultiDomainState, heard: Hypotheses) -> None:
        """Find out the topic from what was heard, while it is not known."""
        if state.topic is not None:
            return
        left = [name for name in self.domains if name not in state.success]
        only = dict.fromkeys(self.domains, 0.0)
        for act, p in heard:
            meant = [name for name in left if self._can_mean(act, name)]
            if len(meant) == 1:
                only[meant[0]] += p
        state.evidence = np.minimum(np.array(list(only.values())), 1.0)
        # what can only mean another domain cannot be heard: errors keep to the user's own
        if only[state.current] > KNOWN or len(left) == 1:
            state.topic = state.current

    def _can_mean(self, act: Act, name: str) -> bool:
        """Return True if a domain has all slots and values of an act."""
        ontology = self.domains[name].domain.ontology
        known = {"": (), TYPE: (ontology.type,), TOPIC: (name,), **ontology.informable}
        return all(
            slot in ontology.requestable or slot in known
            if value is None
            else slot in known and value in (DONTCARE, *known[slot])
            for slot, value, _ in act.items
        )

    def metrics(self, state: MultiDomainState) -> Mapping[str, float]:
        """By domain its success; -1 where the user had no goal in it."""
        return {f"success_{n}": float(state.success.get(n, -1.0)) for n in self.domains}

    def findings(self, state: MultiDomainState) -> Findings:
        """Those of the domains in which the user had goals."""
        own = {name: self.domains[name].findings(state.dialogues[name]) for name in state.wanted}
        return findings_of_domains(own, state.success)


def domain_name(task: SlotFilling) -> str:
    """Name of a task's domain: by its name in PyDial, where it stands for that."""
    return task.domain.stands_for or task.domain.ontology.domain


def _credit(
    state: MultiDomainState, name: str, outcome: Outcome, parts: dict[str, Components]
) -> None:
    """Reward of a domain, and True if it is over."""
    parts[name] = add(parts.get(name, {}), outcome.parts(SYSTEM))
    if outcome.terminated:
        state.success[name] = bool(outcome.success)


def _most(lengths: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The most of either party."""
    found = list(lengths)
    return {party: max(each[party] for each in found) for party in (SYSTEM, USER)}
