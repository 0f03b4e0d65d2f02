"""The rules of a service desk as a task: text in and out, settings, facts."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dialgym.errors import finite_number, one_of, whole_number
from dialgym.io.objects import load
from dialgym.language import AnyText, Constraint, Utterance, WordTrie
from dialgym.language.text import CHARSET
from dialgym.rewards import Components
from dialgym.simulators import Speaker
from dialgym.tasks.base import SYSTEM, USER, Facts, Outcome, Task
from dialgym.tasks.batch import DialogueBatch
from dialgym.tasks.briefs import length_sentence, turns_sentence
from dialgym.tasks.hidden import Hidden, hide
from dialgym.tasks.service_desk import rules, tracking
from dialgym.tasks.service_desk.desk_goals import SIZES, goal_of
from dialgym.tasks.service_desk.domains import DOMAINS, NONE
from dialgym.tasks.service_desk.reading import Reader
from dialgym.tasks.service_desk.schemas import call_lines, tools_of
from dialgym.tasks.service_desk.texts import TOOLS, Texts
from dialgym.tasks.service_desk.types import FAULTS, WANT, WRITE, DeskAct, DeskState

ROOM = "dialgym.tasks.service_desk"
LONGEST = 240
ORDINARY = {SYSTEM: 110, USER: 70, TOOLS: 170}
"""Characters of English that ordinary utterances stay within."""
ALLOWED_LENGTH = 80
"""Of those, the changes that are allowed."""
_RULES = (
    "A customer of your {company} wants one to four things, one after the other. In each turn call "
    "one tool, or say one thing.",
    "Rules: tell and change nothing until the customer is found by name and identified by code. "
    "Change something only as these rules allow it, and only when the customer has said yes to "
    "your asking for just that. Tell only what was asked for. Refuse what the rules forbid, once "
    "you have read the {noun}; and everything after two wrong codes. Ask if there is anything "
    "else when a change is made, and say goodbye when nothing is left.",
    "At the end the database must be as the allowed wishes make it, all that was asked for told, "
    "and nothing forbidden done; then you have 1 point, else none.",
)
_USER_RULES = (
    "Bring up your wishes in order, one at a time, the next when the desk has done with one. Wait "
    "to be asked for your name and code. Say yes when the desk asks if it shall do what you want. "
    "After the last wish say goodbye."
)
_COMPANIES = {"shop": "shop", "phone": "telephone company"}


class ServiceDesk(Task):
    """Serve a customer by tools, under a policy, over a database.

    The user speaks first, of one thing that it wants; the `system`, the desk, speaks or calls a
    tool in each turn. Calls are answered by `tools`, a third speaker of the desk's transcript, and
    the desk goes on. The user of a telephone company holds a device with tools of its own, whose
    answers only the user sees. The dialogue is over (terminated) when either says goodbye, or
    after the last of the `turns`.

    A goal has one to four requests: changes that the policy allows or forbids, fields of a record
    to be told, a device to be mended. Users may not know the number of their order, change their
    mind when they are asked to confirm, claim what is not so, say a wrong code first, or be
    somebody else. The policy is drawn with the goal. Its text is made of the same rules by which
    dialogues are judged.

    Words, calls ``tool(argument="...")`` or in JSON, and English are understood by rules
    (`dialgym.tasks.service_desk.reading`); what is not understood costs a turn and changes nothing,
    and in English a desk by rules says so.

    Rewards, of both parties alike: ``solved``, 1 at the end if the database is as it should be,
    what had to be told was told (refusals too), and nothing forbidden was done, which are measured
    as ``database``, ``told`` and ``policy``; ``turns`` and ``calls``, minus the costs of what the
    desk says and calls. What is read counts nowhere. Forbidden are changes and news for
    somebody unknown, changes without a yes or against a rule, news that nobody asked for or that
    are wrong, and refusals for no reason that the desk has found. What is undone was done.

    Args:
        domain: ``shop`` (orders) or ``phone`` (lines, and a device of the user's).
        split: of the goals: ``train``, ``validation``, ``test``, or ``unseen`` (policies that
            no other split has).
        language: ``words``, or ``english``: sentences with paraphrases, and calls.
        turns: utterances of the desk, calls included.
        turn_cost, call_cost: cost of an utterance that the user hears, and of a call.
        constraint: what action masks allow: ``"grammar"`` (what is well formed), ``"known"`` (of
            the desk the words of acts for which nothing is missing, as the act view has them), or
            None; of ``english`` None.
        longest: characters of an utterance that are looked at, at least.
        eligibility: a record that is read says which changes the policy allows, as the act view's
            observation does; else who goes by words compares its numbers with those of the policy.
        delexicalised: the numbers of records are placeholders, the same in each dialogue: 10, 11
            and so on in the order in which the database lists them, as the act view has them.
        tracked: what the act view's observation has of the record that the open wish means is
            told, too, after what the user says and with what tools answer: its number, whether it
            was read and, with `eligibility`, which changes the policy allows.

    Options of reset: ``goal``, the number of a goal of its split; ``split``, another one.

    Versions:
        v0: the first, of dialgym 0.1.

    Raises:
        ValueError: a setting is not one of the above.

    Source: the form of tau2-bench (Barres et al. 2025, arXiv 2506.07982) and tau-bench (Yao et al.
    2024, arXiv 2406.12045); domains, rules, goals and texts are our own.
    """

    name = "ServiceDesk"
    sources = (TOOLS,)
    for_people = {"language": "english"}  # noqa: RUF012
    expert_for_people = "careful"  # it knows what a desk knows, not the goal
    options = ("goal", "split")
    tokenizer = "word"
    how_to_play = {  # noqa: RUF012
        SYSTEM: "You work at a service desk: you serve a customer by tools, under rules.",
        USER: "You are a customer of a service desk. Say one thing a turn, as your notes have it.",
    }
    speakers = {  # noqa: RUF012
        USER: {
            "agenda": f"{ROOM}.users:AgendaUser",
            "impatient": f"{ROOM}.users:ImpatientUser",
            "lying": f"{ROOM}.users:LyingUser",
        },
        SYSTEM: {
            "handcrafted": f"{ROOM}.policies:HandcraftedDesk",
            "careful": f"{ROOM}.policies:Careful",
            "oracle": f"{ROOM}.oracle:Oracle",
            "careless": f"{ROOM}.policies:Careless",
            "hostile": f"{ROOM}.policies:Hostile",
            "random": f"{ROOM}.policies:RandomDesk",
        },
    }
    act_classes = {  # noqa: RUF012
        SYSTEM: f"{ROOM}.desk_acts:DeskActs",
        USER: f"{ROOM}.user_acts:CustomerActs",
    }
    generators = {"mixture": f"{ROOM}.policies:mixture"}  # noqa: RUF012
    hidden_fields = {SYSTEM: ("goal", "records", "device"), USER: ("records",)}  # noqa: RUF012

    def __init__(
        self,
        domain: str = "shop",
        split: str = "train",
        language: str = "words",
        turns: int = 32,
        turn_cost: float = 0.01,
        call_cost: float = 0.0,
        constraint: str | None = "grammar",
        longest: int = LONGEST,
        eligibility: bool = False,
        delexicalised: bool = False,
        tracked: bool = False,
    ) -> None:
        one_of("domain", domain, tuple(DOMAINS), self.name)
        one_of("split", split, tuple(SIZES), self.name)
        one_of("language", language, ("words", "english"), self.name)
        one_of("constraint", constraint, ("grammar", "known", None), self.name)
        self.domain, self.split = DOMAINS[domain], split
        self.english = language == "english"
        self.turns = whole_number("turns", turns, self.name)
        self.turn_cost = finite_number(f"turn_cost of {self.name}", turn_cost)
        self.call_cost = finite_number(f"call_cost of {self.name}", call_cost)
        self.constrained = constraint is not None and not self.english
        self.known_only = constraint == "known" and self.constrained
        self.tokenizer = "bpe" if self.english else "word"  # type: ignore[misc]
        self.eligibility, self.delexicalised = bool(eligibility), bool(delexicalised)
        self.tracked = bool(tracked)
        self.texts = Texts(
            self.domain, self.english, self.eligibility, tracking.WORDS if self.tracked else ()
        )
        self.reader = Reader(self.domain)
        self.facts = self._facts(whole_number("longest", longest, self.name))

    def _facts(self, longest: int) -> Facts:
        turns, lines, tracked = self.turns, len(self.domain.writes), self.tracked
        changes = (1 + lines) * self.eligibility  # words that tell what is allowed
        spoken = {
            SYSTEM: turns + lines,
            USER: turns + 1,
            TOOLS: turns + tracked * (turns + 1),
        }
        notes = 10
        heard = {
            SYSTEM: spoken,
            USER: {SYSTEM: turns, USER: 2 * turns + 2 + notes, TOOLS: turns + 1},
        }
        words = {
            SYSTEM: 12,
            USER: 14,
            TOOLS: 2 * len(self.domain.fields)
            + changes
            + tracked * (tracking.MOST_WORDS + changes),
        }
        dearest = max(self.turn_cost, self.call_cost, 0.0) * turns
        gift = max(-self.turn_cost, -self.call_cost, 0.0) * turns
        hidden = {SYSTEM: ("goal", "records", "device"), USER: ("records",)}
        return Facts(
            turn_limit=turns,
            longest=dict.fromkeys(self.voices, longest),
            heard=heard,
            returns=dict.fromkeys(self.parties, (-dearest, 1.0 + gift)),
            charset=CHARSET,
            hidden=hidden,
            may_end=self.parties,
            words=None if self.english else dict.fromkeys(self.parties, words),
            pieces=dict.fromkeys(self.voices, longest),
            ordinary={**ORDINARY, TOOLS: ORDINARY[TOOLS] + self._longer()},
            components=dict.fromkeys(self.parties, ("solved", "turns", "calls")),
            metrics=("database", "told", "policy", *FAULTS),
        )

    def _longer(self) -> int:
        """Characters by which settings make an answer of a tool longer."""
        allowed = self.eligibility * ALLOWED_LENGTH
        return allowed + self.tracked * (tracking.LENGTH + allowed)

    @property
    def splits(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:  # type: ignore[override]
        """The goals of each split."""
        return _SPLITS

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> DeskState:
        given = self.check_options(options)
        split = given.get("split", self.split)
        one_of("split", split, tuple(SIZES), f"options of {self.name}")
        number = given["goal"] if "goal" in given else rng.integers(SIZES[split])
        whole_number("goal", number, f"options of {self.name}", 0)
        if number >= SIZES[split]:
            raise ValueError(
                f"goal in options of {self.name}: expected a number below {SIZES[split]:,}, the "
                f"goals of the split {split!r}; got {number!r}."
            )
        return rules.begin(goal_of(self.domain.name, split, int(number), self.delexicalised))

    def speaker(self, state: DeskState) -> str:
        return USER if state.waiting else SYSTEM

    def transcript(self, state: DeskState, party: str) -> Sequence[Utterance]:
        if party == SYSTEM:
            return [*self._policy_notes[state.policy], *state.desk_lines]
        return [*self._goal_notes(state), *state.user_lines]

    @cached_property
    def _policy_notes(self) -> list[list[Utterance]]:
        return [
            [
                Utterance(SYSTEM, line, True)
                for line in self.domain.policy_lines(place, self.english)
            ]
            for place in range(len(self.domain.every))
        ]

    def _goal_notes(self, state: DeskState) -> list[Utterance]:
        """Knowledge of the user: who it is, and what it wants."""
        return [Utterance(USER, note, True) for note in self.texts.notes(state.goal)]

    def conditions(self, party: str) -> Sequence[str]:
        """The rules that every policy has, and how to speak and call."""
        limits = [turns_sentence(self, party), *length_sentence(self, party)]
        examples = self.texts.examples(party)
        listed = ", ".join(map('"{}"'.format, examples)) if self.english else "; ".join(examples)
        said = [f"Say for example: {listed}{'' if self.english else '.'}"]
        tools = call_lines(self.tools[party]) if party in self.tools else []
        if party == USER:
            return [_USER_RULES, *said, *tools, *limits]
        company, noun = _COMPANIES[self.domain.name], self.domain.noun
        spoken = [part.format(company=company, noun=noun) for part in _RULES]
        return [*spoken, *said, *tools, *limits]

    @cached_property
    def tools(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """By party, the tools that it calls, in OpenAI's schema."""
        return tools_of(self.domain)

    def speak(self, state: DeskState, text: str, rng: np.random.Generator) -> Outcome:
        party = self.speaker(state)
        return self.apply(state, party, text, self.reader.read(party, text, state.last))

    def unclear(self, state: DeskState, text: str) -> str | None:
        """See `dialgym.simulators.human.unclear`."""
        party = self.speaker(state)
        if self.reader.read(party, text, state.last).op != NONE:
            return None
        return f"Say for example: {'; '.join(self.texts.examples(party))}."

    def apply(self, state: DeskState, party: str, text: str, act: DeskAct) -> Outcome:
        """Let a party say a text that is an act."""
        line = Utterance(party, text)
        if party == SYSTEM:
            own, other = state.desk_lines, state.user_lines
            answer = rules.desk(self.domain, state, act, self.turns)
        else:
            own, other = state.user_lines, state.desk_lines
            answer = rules.user(self.domain, state, act)
        own.append(line)
        if answer is not None:
            own.append(Utterance(TOOLS, self._answer(state, party, act, answer)))
        else:
            other.append(line)
            if party == USER and self._has_record_to_track(state):
                other.append(Utterance(TOOLS, self._tracked(state)))
        called = 0 <= act.op <= WRITE
        if state.over:
            return self._ended(state, {} if party == USER else self._costs[called])
        return _FREE if party == USER else self._paid[called]

    def _answer(self, state: DeskState, party: str, act: DeskAct, found: int) -> str:
        """Text of what a tool answers to a party."""
        text = self.texts.answer(state, act, found)
        own = party == SYSTEM and self._has_record_to_track(state)
        return self._tracked(state, text) if own else text

    def _has_record_to_track(self, state: DeskState) -> bool:
        """Tell if the desk is told which record the open wish means."""
        return self.tracked and state.wish.op == WANT and state.found != NONE and not state.over

    def _tracked(self, state: DeskState, after: str = "") -> str:
        acts: Any = self.acts[SYSTEM]
        return tracking.tracked(self.texts, state, acts.meant(state), after)

    def _ended(self, state: DeskState, parts: Components) -> Outcome:
        solved = rules.grade(self.domain, state).solved
        both = {name: {**parts, "solved": float(solved)} for name in self.parties}
        return Outcome.of(both, terminated=True, success=solved)

    @cached_property
    def _costs(self) -> tuple[dict[str, float], dict[str, float]]:
        """Components of words of the desk, and of a call."""
        return {"turns": -self.turn_cost}, {"calls": -self.call_cost}

    @cached_property
    def _paid(self) -> list[Outcome]:
        """Outcomes of words of the desk, and of a call, in a dialogue that goes on."""
        return [Outcome.of(dict.fromkeys(self.parties, parts)) for parts in self._costs]

    def observed(self, state: DeskState, party: str) -> DeskState:
        """A copy in which records are hidden, those of the goal too."""
        seen: DeskState = hide(state, self.hidden_fields[party], self.name, party)
        if party == USER:
            told = ((name, getattr(state.goal, name)) for name in ("records", "end"))
            hidden = {name: Hidden(value, (self.name, party, name)) for name, value in told}
            seen.goal = state.goal._replace(**hidden)  # type: ignore[arg-type]
        return seen

    def metrics(self, state: DeskState) -> Mapping[str, float]:
        """The three parts of the judgement; and of each fault whether there was one."""
        faults = (state.faults >> bit & 1 for bit in range(len(FAULTS)))
        return dict(
            zip(self.facts.metrics, map(float, (*rules.grade(self.domain, state), *faults)))
        )

    def judgement(self, state: DeskState) -> list[str]:
        """Sentences on each wish and each fault of a dialogue that is over."""
        from dialgym.tasks.service_desk.judgement import judged

        *lines, _ = judged(self.domain, state)
        return [f"{line}." for line, _ in lines]

    def batch(self, size: int, learner: str, simulator: Speaker) -> DialogueBatch | None:
        """A vectorised form, for a desk that learns with a user by rules."""
        user: Any = load(f"{ROOM}.users:AgendaUser", f"batch of {self.name}")
        if learner != SYSTEM or not isinstance(simulator, user):
            return None
        form: Any = load(f"{ROOM}.batch:DeskBatch", f"batch of {self.name}")
        batch: DialogueBatch = form(self, size, simulator)
        return batch

    def static_constraint(self, party: str) -> Constraint | None:
        if self.known_only and party == SYSTEM:
            return None
        return self.texts.grammars[party] if self.constrained else AnyText()

    def union_constraint(self, party: str) -> Constraint:
        return self.static_constraint(party) or self.texts.grammars[party]

    def constraint(self, state: DeskState, party: str) -> Constraint:
        return self.static_constraint(party) or WordTrie(
            self.acts[SYSTEM].texts(state)  # type: ignore[attr-defined]
        )

    def words(self) -> Sequence[str]:
        """Those of both grammars, of tools' answers and of notes."""
        return () if self.english else self.texts.vocabulary

    def picture(self, state: DeskState) -> np.ndarray | None:
        """The database before and after, and what the user wanted; None until all is over."""
        if not state.over:  # whoever plays is not told what is in the database
            return None
        from dialgym.tasks.service_desk.picture import drawn

        return drawn(self.domain, state)


_FREE = Outcome.of({SYSTEM: {}, USER: {}})
_SPLITS = {
    split: [{"split": split, "goal": number} for number in range(size)]
    for split, size in SIZES.items()
}
