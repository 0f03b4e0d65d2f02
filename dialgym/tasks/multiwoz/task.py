"""The task of multi-domain dialogues: text in and out over the rules on acts."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any, Unpack

import numpy as np

from dialgym.errors import keywords_of, one_of, whole_number
from dialgym.io.tables import fingerprint, locate
from dialgym.language import Constraint, Utterance
from dialgym.tasks.base import SYSTEM, USER, Facts, Outcome, Task
from dialgym.tasks.corpora import BUILT_IN
from dialgym.tasks.findings import Findings, Labelled, misheard
from dialgym.tasks.hidden import hide
from dialgym.tasks.multiwoz.corpus import MultiWOZCorpus
from dialgym.tasks.multiwoz.data import MULTIWOZ, load_world
from dialgym.tasks.multiwoz.dialogue import RuleOptions, Rules, Settings, Turn
from dialgym.tasks.multiwoz.dialogue_state import MultiWOZState
from dialgym.tasks.multiwoz.formats import FILES
from dialgym.tasks.multiwoz.goal_sets import SEEDS, goal_options
from dialgym.tasks.multiwoz.goal_talk import talk_of
from dialgym.tasks.multiwoz.goal_words import goal_words
from dialgym.tasks.multiwoz.guidance import chat_advice, conditions_of
from dialgym.tasks.multiwoz.languages import LANGUAGES
from dialgym.tasks.multiwoz.languages.base import goal_acts
from dialgym.tasks.multiwoz.languages.keywords import about_domain
from dialgym.tasks.multiwoz.noise import NoisyChannel
from dialgym.tasks.multiwoz.notation import read_acts
from dialgym.tasks.multiwoz.ontology import DOMAINS
from dialgym.tasks.multiwoz.rewards import COMPONENTS, REWARDS, bounds
from dialgym.tasks.multiwoz.settings import GOALS, choose_goal
from dialgym.tasks.multiwoz.stages import find_stage
from dialgym.tasks.multiwoz.types import NONE, Acts
from dialgym.tasks.multiwoz.user import BEHAVIOURS
from dialgym.tasks.multiwoz.vectors import Vectoriser

ROOM = "dialgym.tasks.multiwoz"
POLICIES = f"{ROOM}.policies"
ACTS = {
    "entries": f"{ROOM}.party_acts:MultiWOZSystemActs",
    "composite": f"{ROOM}.party_acts:CompositeActs",
}
"""The forms of the system's acts, by the setting ``acts``."""
METRICS = ("inform_precision", "inform_recall", "inform_f1", "book_rate", "match",
           "success_strict", "complete", *(f"success_{domain}" for domain in DOMAINS))  # fmt: skip
HIDDEN_ACTS = {SYSTEM: ("goal", "user", "record"), USER: ("record",)}
"""Fields of the dialogue on acts that each party is not told."""
BELIEVED = ("constraints", "requests", "user_acts", "domain", "booked", "offered")
"""Fields of the system's belief that the user is not told: all but what the system has said."""


@dataclass(slots=True)
class MultiWOZDialogue:
    """A dialogue with what has been said in it."""

    dialogue: MultiWOZState  # on acts
    goal: tuple[Utterance, ...]  # the user's note of its goal
    heard_by_user: list[Utterance]
    heard_by_system: list[Utterance]
    misheard: list[str] = field(default_factory=list)  # acts taken for others

    def copy(self) -> "MultiWOZDialogue":
        """An independent copy."""
        heard = self.heard_by_user.copy(), self.heard_by_system.copy(), self.misheard.copy()
        return MultiWOZDialogue(self.dialogue.copy(), self.goal, *heard)


class MultiWOZ(Task):
    """Find, ask about and book what a city has, in several domains: ConvLab's task.

    The user wants a restaurant, a hotel, a train ... or up to three of them, in one dialogue. It
    says what it is looking for, asks for an address or a phone number, and books; the `system`
    looks into the database and answers. Utterances are dialogue acts in text, several a turn:

        user: Hotel-Inform() Hotel-Inform(Area="north",Stars="0")
        system: Hotel-Recommend(Name="ullin guest house") Booking-Inform()

    The user speaks first. What the system hears goes through a channel that may mistake an act for
    another, and a tracker keeps what is understood. Text that is no acts says nothing.

    In another `language` the same acts are words, each a token, or English sentences. In words the
    system names acts without their values, ``hotel-recommend name``, and the rules find the values
    in the database; with what the user says it gets what is believed and how many rows match. In
    act views it observes 340 features and chooses any of 209 such acts at once, or one of the
    frequent combinations of them; the user observes its goal and what it has heard. See
    `vectors`, `MultiWOZSystemActs`, `CompositeActs` and `MultiWOZUserActs`.

    Rewards, the same for both: -1 for each utterance of the system, 5 once for each domain that is
    done, and at the end 80 if the goal is met, else -40. The dialogue ends (terminated) when the
    user says goodbye, or after `turns` utterances of the system (truncated). The goal is met if
    all requests are answered, what was booked is what was wanted, and some row agrees with
    everything; `metrics` tells more, by domain as well (``success_hotel``).

    Args:
        world: a folder, zip or ``hf:NAME`` of MultiWOZ's files, or ``"built-in"``; None for the
            folder that ``$DIALGYM_MULTIWOZ`` names, or else the city that is built in.
        goals: ``"drawn"`` from the goal model, or one of the frozen sets, ``"train"``, ``"test"``.
        reward: ``"default"``; ``"convlab2"``: +40 whenever all is done, +5 at each turn at which
            the domain talked about is, else -1.
        strict: success asks for the right people, day, stay and time of bookings too.
        user: how the simulated user behaves where none is named: ``"agenda"``, ``"unfriendly"``,
            ``"terse"`` or ``"verbose"``.
        fidelity: ``"correct"``, or ``"convlab2"`` with those faults of the original that change
            results, to compare with its figures; or names of some, joined by ``+``; see
            `fidelity.FAULTS`.
        error_rate: how often an act of the user is misheard, 0 to 1.
        turns: most utterances of the system.
        acts: ``"entries"``, any of the 209 acts at once; ``"composite"``, one of the frequent
            combinations.
        masks: whether acts that the database rules out are masked.
        language: ``"acts"``, ``"words"`` or ``"english"``. In words alone can a system look into
            the database by what it says: a chat of it wants these.
        nlu: your own understanding, an object or the ``module:Class`` of one, see `stages`;
            None for that of the language.
        tracker: your own, likewise; None for the rule tracker.
        nlg: your own wording, likewise; None for that of the language.

    Options of reset: ``goal``, in ConvLab's form, ``{"hotel": {"info": {"area": "north"}, "reqt":
    ["phone"]}}``; ``domains``, those that a drawn goal is to be about, in order; ``number``, of a
    goal of the frozen set.

    Versions:
        v0: the first, of dialgym 0.1. By version 2 of its rules, the present one, the user of
            ``fidelity="convlab2"`` takes a choice without a value as ConvLab-2's does, the rule
            system tells no reference before a booking, and the English is another one.

    Raises:
        ValueError: a setting is not one of the above, or there is no such world.

    Source: Zhu et al. 2020, "ConvLab-2", arXiv 2002.04793; Budzianowski et al. 2018, "MultiWOZ",
    arXiv 1810.00278.
    """

    name = "MultiWOZ"
    version = 2
    options = ("goal", "domains", "number")
    speakers = {  # noqa: RUF012
        USER: {
            "agenda": f"{POLICIES}:MultiWOZAgendaPolicy",
            "agenda-unfriendly": f"{POLICIES}:unfriendly_user",
            "agenda-terse": f"{POLICIES}:terse_user",
            "agenda-verbose": f"{POLICIES}:verbose_user",
            "random": f"{POLICIES}:RandomUser",
        },
        SYSTEM: {
            "rule": f"{POLICIES}:RuleSystemPolicy",
            "random": f"{POLICIES}:RandomMultiWOZSystem",
        },
    }
    acts: Mapping[str, Any]
    hidden_fields = {  # noqa: RUF012
        SYSTEM: ("goal", "heard_by_user", "misheard"),
        USER: ("heard_by_system", "misheard"),
    }
    how_to_play = {  # noqa: RUF012
        "system": "Help the user to find and book what it looks for: ask, recommend, book, and "
        "answer what it wants to know, until it says goodbye.",
        "user": "You have a goal that the system is not told. Say what you look for, ask for "
        "what you want to know, book what you want to book, then say goodbye.",
    }
    for_people = {"language": "english"}  # noqa: RUF012
    generators = {"corpus": MultiWOZCorpus}  # noqa: RUF012

    @keywords_of(Settings)
    def __init__(
        self,
        world: str | PathLike[str] | None = None,
        goals: str = "drawn",
        user: str = "agenda",
        error_rate: float = 0.0,
        acts: str = "entries",
        masks: bool = True,
        language: str = "acts",
        nlu: Any = None,
        tracker: Any = None,
        nlg: Any = None,
        **rules: Unpack[RuleOptions],
    ) -> None:
        settings = Settings(**rules)
        one_of("goals", goals, GOALS, self.name)
        one_of("reward", settings.reward, REWARDS, self.name)
        one_of("user", user, BEHAVIOURS, self.name)
        one_of("acts", acts, ACTS, self.name)
        one_of("language", language, LANGUAGES, self.name)
        self.turns = whole_number("turns", settings.turns, self.name)
        self.world = load_world(world)
        self.played = {"world": self.world.source}
        self.stand_in = BUILT_IN if world is None and self.world.stand_in else None
        self.goals, self.user, self.masks = goals, user, masks
        self.rules = Rules(self.world, settings, find_stage("tracker", tracker, self.world))
        self.vectoriser = Vectoriser(self.world.database, self.rules.fidelity)
        self.channel = NoisyChannel(self.world, error_rate)
        self.language = LANGUAGES[language](self.world)
        self.chat_advice = chat_advice(language)
        self.nlu = find_stage("nlu", nlu, self.world) or self.language
        self.nlg = find_stage("nlg", nlg, self.world) or self.language
        self.tokenizer = self.language.tokenizer  # type: ignore[misc]
        self.act_classes = {SYSTEM: ACTS[acts], USER: f"{ROOM}.party_acts:MultiWOZUserActs"}
        self.facts = self._facts(settings.reward)

    @classmethod
    def surroundings(cls, settings: Mapping[str, Any]) -> str | None:
        """Which world is played, and the state of its files."""
        name = settings.get("world") or os.environ.get(MULTIWOZ)
        if name in (None, BUILT_IN):
            return None
        return fingerprint(locate(name, cls.name, patterns=FILES))

    @cached_property
    def splits(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:  # type: ignore[override]
        """The goals of the frozen sets, whichever `goals` are played."""
        return {name: goal_options(self.world, name) for name in SEEDS}

    def _facts(self, reward: str) -> Facts:
        returns = bounds(reward, self.turns)
        spoken = {SYSTEM: self.turns, USER: self.turns + 1}
        return Facts(
            turn_limit=self.turns,
            longest=self.language.longest,
            heard={SYSTEM: spoken, USER: {**spoken, USER: self.turns + 2}},
            returns={SYSTEM: returns, USER: returns},
            charset=self.language.charset,
            hidden={SYSTEM: ("goal", "what the user really said")},
            may_end=(SYSTEM, USER),
            words=self.language.words,
            ordinary=self.language.ordinary,
            components={SYSTEM: COMPONENTS, USER: COMPONENTS},
            metrics=METRICS,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """By its arguments and the world that it came to play, which is loaded once a process."""
        made_with = {**(self.made_with or {}), "world": self.world.source}
        return _remade, (type(self), made_with), (self.made_with, self.stand_in)

    def __setstate__(self, state: tuple[Mapping[str, Any] | None, str | None]) -> None:
        self.made_with, self.stand_in = state

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> MultiWOZDialogue:
        goal = choose_goal(self.world, self.goals, self.check_options(options), rng)
        note = self.nlg.say(goal_acts(goal), USER, rng)
        noted = (Utterance(USER, note, private=True),)
        return MultiWOZDialogue(self.rules.begin(goal, rng), noted, [], [])

    def speaker(self, state: MultiWOZDialogue) -> str:
        return USER if state.dialogue.user_speaks else SYSTEM

    def transcript(self, state: MultiWOZDialogue, party: str) -> Sequence[Utterance]:
        return state.heard_by_system if party == SYSTEM else [*state.goal, *state.heard_by_user]

    def conditions(self, party: str) -> Sequence[str]:
        return conditions_of(self, party)

    def scenario(self, state: MultiWOZDialogue, party: str) -> str:
        """The user's goal in English, with what it is to change where nothing is found."""
        return goal_words(state.dialogue.goal) if party == USER else ""

    def observed(self, state: MultiWOZDialogue, party: str) -> MultiWOZDialogue:
        """Without what the dialogue on acts keeps from the party, too."""
        seen: MultiWOZDialogue = super().observed(state, party)
        seen.dialogue = hide(seen.dialogue, HIDDEN_ACTS[party], self.name, party)
        if party == USER:
            seen.dialogue.belief = hide(seen.dialogue.belief, BELIEVED, self.name, party)
        return seen

    def situation(self, state: MultiWOZDialogue, party: str) -> Any:
        """For the system what it believes, and what was said last."""
        if party == USER:
            return super().situation(state, party)
        belief = state.dialogue.belief
        said = belief.user_acts, belief.system_acts
        return belief.constraints, belief.requests, belief.booked, belief.domain, *said

    def speak(self, state: MultiWOZDialogue, text: str, rng: np.random.Generator) -> Outcome:
        if state.dialogue.user_speaks:
            return self._user_says(state, text, rng)
        return self._system_says(state, text, rng)

    def _user_says(self, state: MultiWOZDialogue, text: str, rng: np.random.Generator) -> Outcome:
        said = _about(self.meant(text, USER), state.dialogue)
        heard = self.channel.hear(said, rng)
        if heard != said:
            state.misheard += misheard(_labelled(said), _labelled(heard))
        turn = self.rules.user_turn(state.dialogue, said, rng, heard)
        got = self.language.hear(text, said, heard, state.dialogue.belief, rng)
        state.heard_by_user.append(Utterance(USER, text))
        state.heard_by_system.append(Utterance(USER, got))
        return _outcome(turn)

    def _system_says(self, state: MultiWOZDialogue, text: str, rng: np.random.Generator) -> Outcome:
        acts, heard = self._system_means(state, text, rng)
        state.heard_by_system.append(Utterance(SYSTEM, text))
        state.heard_by_user.append(Utterance(SYSTEM, heard))
        return _outcome(self.rules.system_turn(state.dialogue, acts, rng))

    def _system_means(
        self, state: MultiWOZDialogue, text: str, rng: np.random.Generator
    ) -> tuple[Acts, str]:
        """The acts of the system's text, and what the user hears of it."""
        numbers = self.language.entries(text)
        if numbers is not None:
            acts = self.vectoriser.lexicalise(numbers, state.dialogue.belief, rng)
            return acts, self.nlg.say(acts, SYSTEM, rng)
        understood = self.nlu.understand(text, SYSTEM)
        if understood:
            return _about(understood, state.dialogue), text
        acts = read_acts(text) or ()
        return acts, self.nlg.say(acts, SYSTEM, rng) if acts else text

    def meant(self, text: str, party: str) -> Acts:
        """The acts of a text of `party`, in the task's language or in their notation."""
        return self.nlu.understand(text, party) or read_acts(text) or ()

    def metrics(self, state: MultiWOZDialogue) -> Mapping[str, float]:
        """Inform precision, recall and F1, book rate, match, strict success, complete, by domain.

        ``success_hotel`` is that of the hotel alone; -1 if the goal has none.
        """
        found = self.rules.metrics(state.dialogue)
        counts, done = found.counts, self.rules.successes(state.dialogue)
        values = (counts.precision, counts.recall, counts.f1, found.book_rate, found.match,
                  found.strict_success, found.complete, *map(done.get, DOMAINS))  # fmt: skip
        return {n: -1.0 if v is None else float(v) for n, v in zip(METRICS, values)}

    def findings(self, state: MultiWOZDialogue) -> Findings:
        """By domain success, inform precision, recall and F1, book rate, match; and the rest."""
        told = state.dialogue.record.informed
        requests = {
            f"{domain} {slot}": (domain, slot) in told
            for domain, wanted in state.dialogue.goal.domains.items()
            for slot in wanted.requests
        }
        done, failures = self.rules.successes(state.dialogue), self.rules.failures(state.dialogue)
        domains = {domain: self._measures(state, domain, done[domain]) for domain in done}
        talk = talk_of(self, state.dialogue.goal, state.heard_by_user)
        return Findings(domains, requests, failures, state.misheard, talk)

    def _measures(self, state: MultiWOZDialogue, domain: str, done: bool) -> dict[str, float]:
        own = self.rules.metrics(state.dialogue, domain)
        counts = own.counts
        values = (done, counts.precision, counts.recall, counts.f1, own.book_rate, own.match)
        names = ("success", *METRICS[:5])
        return {n: -1.0 if v is None else float(v) for n, v in zip(names, values)}

    @cached_property
    def _constraints(self) -> Mapping[str, Constraint]:
        return {party: self.language.grammar(party) for party in self.parties}

    def static_constraint(self, party: str) -> Constraint:
        return self._constraints[party]

    def words(self) -> Sequence[str]:
        return self.language.vocabulary


def _about(acts: Acts, dialogue: MultiWOZState) -> Acts:
    """The acts, those of no domain about the one that is talked about."""
    if all(act.domain for act in acts):
        return acts
    domain = dialogue.record.domain or dialogue.belief.domain
    named = [act if act.domain else about_domain(act, domain) for act in acts]
    return tuple([act for act in named if act.domain])


def _remade(kind: type[MultiWOZ], arguments: Mapping[str, Any]) -> MultiWOZ:
    return kind(**arguments)


def _outcome(turn: Turn) -> Outcome:
    both = {SYSTEM: dict(turn.components), USER: dict(turn.components)}
    return Outcome.of(both, turn.terminated, turn.truncated, turn.success)


def _labelled(acts: Acts) -> list[Labelled]:
    """Acts by what they are about, and their values."""
    kinds = [f"{domain}-{intent}" for intent, domain, _, _ in acts]
    return [
        (f"{kind}({'' if act.slot == NONE else act.slot})", act.value)
        for kind, act in zip(kinds, acts)
    ]
