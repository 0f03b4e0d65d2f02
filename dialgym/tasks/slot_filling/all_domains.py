"""Several domains in one dialogue, with one learner that speaks for all of them."""

from bisect import bisect_right
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np

from dialgym.errors import unknown
from dialgym.language import Utterance
from dialgym.language.acts import Act, SlotValue, print_act
from dialgym.rewards import Components
from dialgym.simulators import EachReplies
from dialgym.tasks.acts import ActSpeaker, PartyActs, RandomActs
from dialgym.tasks.base import SYSTEM, USER, Facts, Outcome
from dialgym.tasks.briefs import listed, turns_sentence
from dialgym.tasks.slot_filling.guidance import (
    about_database,
    goal_sentence,
    note_of,
    system_acts,
    user_form,
)
from dialgym.tasks.slot_filling.multi_domain import (
    HIDDEN_FROM_SYSTEM,
    TOPIC,
    MultiDomain,
    MultiDomainState,
    domain_name,
)
from dialgym.tasks.slot_filling.multi_domain_acts import ASK, HELLO, TOPICS, spoken
from dialgym.tasks.slot_filling.own_settings import Given
from dialgym.tasks.slot_filling.party_acts import SlotUserActs
from dialgym.tasks.slot_filling.policies import HandcraftedSystem
from dialgym.tasks.slot_filling.task import SlotFilling

Generator = np.random.Generator
DomainLike = str | Mapping[str, Any]
"""A domain of `SlotFillingDomains`: its name or path, or a mapping of settings."""
DOMAINS = ("CamRestaurants", "SFRestaurants", "Laptops11")
NAME = "name"
ROOM = "dialgym.tasks.slot_filling.all_domains"


class SlotFillingDomains(MultiDomain):
    """Help a user who wants something in several domains, as one system: PyDial's simulation.

    The user begins with its first domain and names that only when it is asked to; once it has what
    it wants there it goes on with its next. The rules are those of `MultiDomain`, which has the
    same dialogues with a policy for each domain; here one `system` speaks for all of them, and the
    `user` is the other party. Utterances are dialogue acts in text, as in `SlotFilling`.

    In act views the acts of the system are those of each domain, ``CamRestaurants.request_food``,
    and of ``topics``, which speaks while it is not known which domain the user means:
    ``topics.hello``, ``topics.ask_topic`` and ``topics.bye``. Masks allow those of the domain that
    is talked about, or of ``topics``. The system observes what is talked about, one entry for each
    domain and one for ``topics``; then its belief in each domain; then what ``topics`` observes.
    The user observes and chooses likewise, `SlotUserActs` of each domain; its answers to ``topics``
    are ``topics.inform`` and ``topics.hello``.

    Rewards, the same for both, are those of all domains and of ``topics``. Their components have
    the name of whose they are, ``CamRestaurants/turn``. Success is that in each of the user's
    domains; ``metrics`` has it by domain, ``success_CamRestaurants``, -1 where the user had no goal
    there.

    Args:
        domains: names or paths of the domains, see `SlotFilling`; each may be a mapping of settings
            of its own in place of those below, with ``domain`` and, if need be, a ``name``:
            ``{"domain": "Hotels", "error_rate": 0.3}``.
        env: the setting of the benchmark, 1 to 6, for what follows and is None.
        least, most: number of domains in which the user has goals.
        include: how likely it has one in each further domain, from `least` to `most`.
        error_rate: how often the best hypothesis is wrong, 0 to 1.
        masks: whether rules restrict the summary acts of either party.
        user: how the simulated user behaves; see `SlotFilling`.
        rewards: any of ``turn``, ``closing``, ``success`` and ``failure``; see `SlotFilling`.
        fidelity: ``"correct"``, or ``"pydial"`` with the faults of the original.
        turns: utterances of the system about a domain, and of ``topics``.

    Options of reset: ``domains``, names in the user's order; ``goals``, by domain the options of
    `SlotFilling`.

    Raises:
        ValueError: two domains have one name, or a setting is impossible.

    Source: Ultes et al. 2017, PyDial: A multi-domain statistical dialogue system toolkit.
    """

    name = "SlotFillingDomains"
    speakers = {  # noqa: RUF012
        USER: {"agenda": f"{ROOM}:DomainsAgenda", "random": f"{ROOM}:random_party"},
        SYSTEM: {"handcrafted": f"{ROOM}:HandcraftedDomains", "random": f"{ROOM}:random_party"},
    }
    hidden_fields = {  # noqa: RUF012
        SYSTEM: HIDDEN_FROM_SYSTEM,
        USER: ("topic", "evidence", "attempts", "lines"),
    }
    how_to_play = {  # noqa: RUF012
        "system": "The user looks for something in one domain after another. Ask for the topic, "
        "ask_topic(), until you know which; then ask for what you have not understood, offer a "
        'row, inform(name="..."), and answer what is asked.',
        "user": "You have goals that the system is not told, one after the other. Ask for the "
        "first until you have all that you want to know, say bye(), and go on with the next. "
        'inform(topic="...") tells which one you mean.',
    }

    def __init__(
        self,
        domains: Sequence[DomainLike] = DOMAINS,
        env: int = 1,
        least: int = 1,
        most: int = 3,
        include: float = 0.6,
        error_rate: float | None = None,
        masks: bool | None = None,
        user: Given = None,
        rewards: Given = None,
        fidelity: str = "correct",
        turns: int = 25,
    ) -> None:
        shared = {
            "env": env, "error_rate": error_rate, "masks": masks, "user": user,
            "rewards": rewards, "fidelity": fidelity, "turns": turns,
        }  # fmt: skip
        own = [_settings(domain) for domain in _listed(domains)]
        tasks = [SlotFilling(**{**shared, **settings}) for _, settings in own]
        named = [(name or domain_name(task), task) for (name, _), task in zip(own, tasks)]
        super().__init__(named, least, min(most, max(len(named), 1)), include)
        self.played = {
            "domains": [
                {**settings, NAME: name, "domain": task.domain.played}
                for (name, task), (_, settings) in zip(named, own)
            ]
        }

    @classmethod
    def surroundings(cls, settings: Mapping[str, Any]) -> Hashable:
        """The state of the files of the domains, and of their settings."""
        shared = {name: settings.get(name) for name in ("user", "rewards")}
        own = [_settings(domain)[1] for domain in _listed(settings.get("domains", DOMAINS))]
        return tuple(SlotFilling.surroundings({**shared, **each}) for each in own)

    def _set_parties(self) -> None:
        self.parties = (SYSTEM, USER)  # type: ignore[misc]
        self.acts = {SYSTEM: SystemActs(self), USER: UserActs(self)}
        self.facts = self._facts()

    def _facts(self) -> Facts:
        facts = super()._facts()
        components = tuple(
            f"{agent}/{part}" for agent, parts in facts.components.items() for part in parts
        )
        turns, n = facts.turn_limit, len(self.domains)
        lows, highs = zip(*facts.returns.values())
        bounds = float(sum(lows)), float(sum(highs))
        heard = {SYSTEM: turns + 1, USER: 2 * turns + n}
        return replace(
            facts,
            heard={SYSTEM: heard, USER: {**heard, USER: 2 * turns + 3 * n}},
            returns={SYSTEM: bounds, USER: bounds},
            hidden={SYSTEM: ("goals", "what the user really said"), USER: ("what is believed",)},
            may_end=(SYSTEM, USER),
            components={SYSTEM: components, USER: components},
        )

    def initial(self, rng: Generator, options: Mapping[str, Any] | None = None) -> MultiDomainState:
        state = self.begin(rng, options)
        notes = [line for name in state.wanted for line in self._goal(state, name)]
        state.user_lines[:0] = notes
        return state

    def _goal(self, state: MultiDomainState, name: str) -> tuple[Utterance, ...]:
        """The user's note of a goal: the domain, and what it wants there."""
        note = note_of(self.domains[name], state.dialogues[name].goal)
        return Utterance(USER, _about(name), private=True), note

    def conditions(self, party: str) -> Sequence[str]:
        """Those on turns, and the database of each domain."""
        names = f"The domains are {listed([*self.domains])}."
        if party == USER:
            say = print_act(Act("inform", (SlotValue(TOPIC, "..."),)))
            first = next(iter(self.domains.values()))
            told = f"Name a domain only when you are asked to: {say}."
            return [turns_sentence(self, party), names, told, user_form(first)]
        asked = f"Ask for the domain by {spoken(ASK)}; {spoken(HELLO)} greets."
        own = [
            f"{name}: {' '.join(about_database(task))} {system_acts(task)}"
            for name, task in self.domains.items()
        ]
        return [turns_sentence(self, party), names, asked, *own]

    def scenario(self, state: MultiDomainState, party: str) -> str:
        """The user's goals in English, in their order."""
        if party == SYSTEM:
            return ""
        goals = {name: state.dialogues[name].goal for name in state.wanted}
        return "\n".join(f"In {n}: {goal_sentence(self.domains[n], g)}" for n, g in goals.items())

    def speaker(self, state: MultiDomainState) -> str:
        return USER if state.user_speaks else SYSTEM

    def transcript(self, state: MultiDomainState, party: str) -> Sequence[Utterance]:
        return state.user_lines if party == USER else state.lines

    def observed(self, state: MultiDomainState, party: str) -> MultiDomainState:
        """Without what a party is not told, in each domain as well."""
        seen = super(MultiDomain, self).observed(state, party)
        seen.dialogues = {n: t.observed(seen.dialogues[n], party) for n, t in self.domains.items()}
        return seen  # type: ignore[no-any-return]

    def speak(self, state: MultiDomainState, text: str, rng: Generator) -> Outcome:
        parts: dict[str, Components] = {agent: {} for agent in self.agents}
        say = self._user_says if state.user_speaks else self._system_says
        outcome = self._outcome(state, say(state, text, rng, parts), parts)
        own = {
            f"{agent}/{name}": value
            for agent, named in outcome.components.items()
            for name, value in named.items()
        }
        ends = outcome.terminated, outcome.truncated, outcome.success
        return Outcome.of({SYSTEM: own, USER: own}, *ends)


def _listed(domains: Any) -> Sequence[DomainLike]:
    if isinstance(domains, str | Mapping) or not isinstance(domains, Sequence):
        raise ValueError(
            f"domains of SlotFillingDomains: expected a list of names or of mappings of settings, "
            f"such as ['CamRestaurants', 'SFRestaurants']; got {domains!r}."
        )
    return domains


def _settings(domain: DomainLike) -> tuple[str | None, dict[str, Any]]:
    """The name of a domain, where it is given one, and its settings."""
    if not isinstance(domain, Mapping):
        return None, {"domain": domain}
    own = dict(domain)
    name = own.pop(NAME, None)
    for key in own:
        if key not in OWN_SETTINGS:
            raise unknown("setting", key, (NAME, *OWN_SETTINGS), "domains of SlotFillingDomains")
    return name, own


OWN_SETTINGS = (
    "domain", "env", "error_rate", "noise", "masks", "user", "goals", "rewards", "fidelity",
    "turns",
)  # fmt: skip
"""Settings of `SlotFilling` that a domain may have of its own."""


def _about(name: str) -> str:
    return print_act(Act("inform", (SlotValue(TOPIC, name),)))


class JoinedActs(PartyActs):
    """The acts of one party in all domains and about topics, each with its owner's name.

    Args:
        parts: the acts of each domain and of ``topics``.
    """

    def __init__(self, parts: Mapping[str, PartyActs]) -> None:
        self.parts = parts
        self.names = [f"{owner}.{act}" for owner, acts in parts.items() for act in acts.names]
        self.number = {name: i for i, name in enumerate(self.names)}
        counts = [len(acts.names) for acts in parts.values()]
        self.first = dict(zip(parts, accumulate(counts, initial=0)))
        self.size = len(parts) + sum(acts.size for acts in parts.values())
        self._owners, self._starts = list(parts), list(self.first.values())

    def owner(self, state: MultiDomainState) -> str:
        """Whose acts can be chosen."""
        raise NotImplementedError

    def observe(self, state: MultiDomainState) -> np.ndarray:
        owner = self.owner(state)
        about = np.array([owner == name for name in self.parts], np.float32)
        return np.concatenate([about, *(acts.observe(state) for acts in self.parts.values())])

    def mask(self, state: MultiDomainState) -> np.ndarray:
        mask, owner = np.zeros(len(self.names), bool), self.owner(state)
        first = self.first[owner]
        mask[first : first + len(self.parts[owner].names)] = self.parts[owner].mask(state)
        return mask

    def split(self, action: int) -> tuple[str, int]:
        """The owner of an act, and its number among the owner's."""
        place = bisect_right(self._starts, action) - 1
        return self._owners[place], action - self._starts[place]

    def text(self, state: MultiDomainState, action: Any, rng: Generator) -> str:
        owner, own = self.split(action)
        return self.parts[owner].text(state, own, rng)

    def note(self, state: MultiDomainState, action: Any, text: str) -> None:
        """Only whose turn it is takes note: another domain's act is said, and not meant there."""
        owner, own = self.split(action)
        if owner == self.owner(state):
            self.parts[owner].note(state, own, text)


class HandcraftedDomains(EachReplies):
    """The handcrafted policy in each domain; it says hello, and asks for the topic until told."""

    def reply(self, task: SlotFillingDomains, state: MultiDomainState, rng: Generator) -> str:
        if state.topic is None:
            return spoken(ASK if state.lines else HELLO)
        own = task.domains[state.topic]
        return HandcraftedSystem().reply(own, state.dialogues[state.topic], rng)

    def act(self, task: SlotFillingDomains, state: MultiDomainState, rng: Generator) -> int:
        """The number of the act that it says."""
        acts = task.acts[SYSTEM]
        assert isinstance(acts, SystemActs)
        if state.topic is None:
            return acts.number[f"{TOPICS}.{ASK if state.lines else HELLO}"]
        own, dialogue = task.domains[state.topic], state.dialogues[state.topic]
        return acts.first[state.topic] + HandcraftedSystem().act(own, dialogue, rng)


class DomainsAgenda:
    """The simulated user; see `MultiDomain.planned`."""

    def reply(self, task: SlotFillingDomains, state: MultiDomainState, rng: Generator) -> str:
        return task.planned(state)

    def act(self, task: SlotFillingDomains, state: MultiDomainState, rng: Generator) -> int:
        """The number of the act that says the same."""
        acts = task.acts[USER]
        assert isinstance(acts, UserActs)
        return acts.planned(state)


def random_party() -> ActSpeaker:
    """A party that says any of its acts that the masks allow."""
    return ActSpeaker(RandomActs())


class SystemActs(JoinedActs):
    """The acts of the system; see `SlotFillingDomains`."""

    policies = {"handcrafted": HandcraftedDomains, "random": RandomActs}  # noqa: RUF012

    def __init__(self, task: SlotFillingDomains) -> None:
        super().__init__(task.agent_acts)

    def owner(self, state: MultiDomainState) -> str:
        return state.topic or TOPICS


class UserActs(JoinedActs):
    """The acts of the user; see `SlotFillingDomains`."""

    policies = {"agenda": DomainsAgenda, "random": RandomActs}  # noqa: RUF012

    def __init__(self, task: SlotFillingDomains) -> None:
        own = {name: UserDomainActs(name, each) for name, each in task.domains.items()}
        super().__init__({**own, TOPICS: UserTopicActs()})

    def owner(self, state: MultiDomainState) -> str:
        return state.current if state.current and not state.naming else TOPICS

    def planned(self, state: MultiDomainState) -> int:
        """The act that the simulated user is about to say."""
        owner = self.owner(state)
        return self.first[owner] + self.parts[owner].planned(state)  # type: ignore[attr-defined]


class UserDomainActs(PartyActs):
    """The acts of the user in one of the domains."""

    def __init__(self, domain: str, task: SlotFilling) -> None:
        self.domain, self.own = domain, SlotUserActs(task)
        self.names, self.size = self.own.names, self.own.size

    def observe(self, state: MultiDomainState) -> np.ndarray:
        return self.own.observe(state.dialogues[self.domain])

    def mask(self, state: MultiDomainState) -> np.ndarray:
        return self.own.mask(state.dialogues[self.domain])

    def text(self, state: MultiDomainState, action: Any, rng: Generator) -> str:
        return self.own.text(state.dialogues[self.domain], action, rng)

    def planned(self, state: MultiDomainState) -> int:
        return self.own.planned(state.dialogues[self.domain])


class UserTopicActs(PartyActs):
    """The user's answers to ``topics``; it observes which of them is asked for."""

    names = ("inform", HELLO)
    size = 2

    def observe(self, state: MultiDomainState) -> np.ndarray:
        hello = state.naming == spoken(HELLO)
        return np.array([bool(state.naming) and not hello, hello], np.float32)

    def text(self, state: MultiDomainState, action: Any, rng: Generator) -> str:
        return spoken(HELLO) if action else _about(state.current)

    def planned(self, state: MultiDomainState) -> int:
        return int(state.naming == spoken(HELLO))
