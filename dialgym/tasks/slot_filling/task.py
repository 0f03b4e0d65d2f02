"""The rules of slot filling."""

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any, Unpack

import numpy as np

from dialgym.errors import keywords_of, one_of, whole_number
from dialgym.io.tables import fingerprint
from dialgym.language import AnyText, Constraint, Utterance, WordTrie
from dialgym.language.acts import NULL, Act, Hypotheses
from dialgym.tasks.base import SYSTEM, USER, Facts, Outcome, Task
from dialgym.tasks.corpora import BUILT_IN
from dialgym.tasks.findings import Findings
from dialgym.tasks.slot_filling.domain.domain import checked, domain_files, load_domain
from dialgym.tasks.slot_filling.domain.goals import GoalGenerator
from dialgym.tasks.slot_filling.error_channel import FIDELITIES, channel_of
from dialgym.tasks.slot_filling.findings import findings_of, note_misheard
from dialgym.tasks.slot_filling.guidance import conditions_of, goal_sentence, note_of
from dialgym.tasks.slot_filling.languages import HYPOTHESES, LANGUAGES, USER_ACTS, read_notation
from dialgym.tasks.slot_filling.own_settings import (
    Given,
    behaviour_of,
    goals_of,
    masks_of,
    rewards_of,
    system_of,
    tracker_of,
    yaml_files,
)
from dialgym.tasks.slot_filling.rewards import outcome, succeeded
from dialgym.tasks.slot_filling.settings import (
    POLICIES,
    ROOM,
    SPEAKERS,
    SystemOptions,
    SystemSettings,
    fixed_goal,
    fixed_patience,
    setting,
)
from dialgym.tasks.slot_filling.summary import Summariser
from dialgym.tasks.slot_filling.summary_acts import SummaryActs
from dialgym.tasks.slot_filling.tracker import Layout
from dialgym.tasks.slot_filling.types import SlotFillingBelief, SlotFillingState, Summary
from dialgym.tasks.slot_filling.user import SlotFillingUser, listen

DOMAIN = "Restaurants"
GREETING = Act("hello")
BYE = "bye"
SYSTEM_ACTS = ("hello", "bye", "request", "confirm", "select", "inform", "reqmore", "repeat",
               "confreq")  # fmt: skip


class SlotFilling(Task):
    """Find a row of a database for a user who is heard through noise: PyDial's benchmark.

    The user wants a restaurant, say, of a certain food, area and price range, and its phone
    number; the `system` asks, confirms, offers and tells. Utterances are dialogue acts in text,
    ``request(area)``, ``inform(name="the nirala",food="indian")``. The system greets first, by
    itself. It hears the user through a channel that may mistake an act for another, as a list of
    acts with probabilities, ``inform(food="thai") 0.83 | null() 0.17``; what it believes is
    tracked by the rules. Whatever is no act that the speaker knows counts as ``null()``.

    In another `language` the same acts are words, each a token, or English sentences. The system
    may always name a summary act, ``request area`` or ``inform_alternatives``, and the rules find
    the act that it becomes. In words, the language of token views, it says nothing else, nor where
    the user alone speaks English:

        user: p8 inform food thai p1 request phone
        system: request area

    In act views the system observes its belief and chooses summary acts, `SlotSystemActs`, and the
    user observes how its goal stands and chooses acts about it, `SlotUserActs`.

    Rewards, the same for both: -1 for each utterance of the system and for its answer to the
    user's goodbye; 20 at the end if the row named last meets the user's goal as it is by then, and
    all requests are answered, each by what the row has of which it was told; or those of
    `rewards`. An act such as ``inform(name="none",name!="the nirala",area="dontcare")``, that there
    is nothing else, says what was looked for: its ``dontcare`` is no answer. The dialogue ends
    (terminated) with a ``bye()`` of either, that of the user's first utterance aside, or after
    `turns` utterances of the system.

    Args:
        domain: a built-in domain, one of PyDial's by name, or the path of one's files; see
            `load_domain`. `SlotFilling.domain.source` says which it is.
        env: the setting of the benchmark, 1 to 6, for what follows and is None.
        error_rate: how often the best hypothesis is wrong, 0 to 1.
        noise: ``"set1"`` or ``"set3"``, lists of hypotheses; ``"single"``, only one.
        user: how the simulated user behaves: ``"standard"``, ``"unfriendly"``, or probabilities of
            its choices, such as ``{"like": "unfriendly", "greet": 0.5, "patience": [2, 4]}``.
        goals: how goals are drawn: any of ``constraints`` (3), ``requests`` (at most 2),
            ``matches``, the least and most rows that meet them (2, 3), and ``split``, ``"train"``,
            ``"validation"`` or ``"test"`` by the constraints (`dialgym.tasks.splits`).
        rewards: any of ``turn`` (-1), ``closing`` (-1), ``success`` (20) and ``failure`` (0).
            `user`, `goals` and `rewards` may be paths of YAML files; see `own_settings`.
        fidelity: ``"correct"``, or ``"pydial"`` with those faults of the original that change
            results, to compare with its figures; there any answer to a request counts, a wrong one
            as well.
        turns: utterances of the system in a dialogue.
        language: ``"acts"``, ``"words"``: one word for each value, and for how likely a hypothesis
            is, in tenths; ``"english"``: sentences by templates, read by rules; or
            ``"english_user"``: the user speaks English, and the system names summary acts.
        masks: whether rules restrict the summary acts of either party; those of the system by group
            with a mapping or its YAML file, ``{"inform": True, "request": False, "bye": True}``.
        inform_accepted: accepted slots from which on ``inform`` is allowed, and the handcrafted
            policy offers a row, although there is more to ask.
        inform_slots: most slots that one act of the system tells of, 1 to 11.
        tracker: ``"focus"``; ``"baseline"``, the likeliest value so far; your own `BeliefTracker`
            or its ``module:Class``, made of the ontology; or a mapping with one of them and
            `Thresholds`, ``{"tracker": "focus", "requested": 0.3, "accepted": 0.6, "sure": 0.5}``.
        confreq: acts ``confreq_S_R`` too, which take the value of S as understood and request R.
        venue_count: these say how many rows are left, if more than one.

    Options of reset: ``constraints``, a mapping of slots to values or ``dontcare``; ``requests``,
    a sequence of slots; ``patience``, how often the user puts up with the same act.

    Versions:
        v0: the first, of dialgym 0.1. By version 1 of its rules any answer to a request counted;
            by version 2 if the row named last had it, and ``dontcare``, as what was looked for,
            was taken for an answer; by version 3, the present one, if the row of which it was
            told has it, and ``dontcare`` names no row; its English is another one, too.

    Raises:
        ValueError: a setting is not one of the above, there is no such domain, or it has more words
            than ``language="words"`` can take.

    Source: Casanueva et al. 2017, arXiv 1711.11023.
    """

    name = "SlotFilling"
    version = 3
    options = ("constraints", "requests", "patience")
    speakers = SPEAKERS
    generators = {"halves": f"{POLICIES}:halves"}  # noqa: RUF012
    acts: Mapping[str, Any]
    act_classes = {  # noqa: RUF012
        SYSTEM: f"{ROOM}.party_acts:SlotSystemActs",
        USER: f"{ROOM}.party_acts:SlotUserActs",
    }
    batches = {SYSTEM: (f"{POLICIES}:SlotAgendaPolicy", f"{ROOM}.batch:SlotFillingBatch")}  # noqa: RUF012
    hidden_fields = {  # noqa: RUF012
        SYSTEM: ("user_state", "planned", "simulated", "told", "goal", "heard_by_user", "misheard"),
        USER: ("belief", "summary", "chosen", "heard_by_system", "misheard"),
    }
    how_to_play = {  # noqa: RUF012
        "system": "The user looks for something in a database. Ask for what you have not "
        "understood, offer what fits, answer what is asked, and say goodbye at the end.",
        "user": "You want something that the system is not told. Ask for it until you have heard "
        "of one that fits and all that you want to know of it, then say goodbye.",
    }
    for_people = {"language": "english"}  # noqa: RUF012

    @keywords_of(SystemSettings)
    def __init__(
        self,
        domain: str | PathLike[str] = DOMAIN,
        env: int = 1,
        error_rate: float | None = None,
        noise: str | None = None,
        user: Given = None,
        goals: Given = None,
        rewards: Given = None,
        fidelity: str = "correct",
        turns: int = 25,
        language: str = "acts",
        **system: Unpack[SystemOptions],
    ) -> None:
        one_of("fidelity", fidelity, FIDELITIES, self.name)
        one_of("language", language, LANGUAGES, self.name)
        whole_number("turns", turns, self.name)
        own = system_of(system, language)
        chosen = setting(env)
        self.env, self.fidelity, self.turns = env, fidelity, turns
        self.domain = checked(load_domain(domain))
        self.played = {"domain": self.domain.played}
        self.stand_in = BUILT_IN if self.domain.stands_for else None
        ontology, database = self.domain.ontology, self.domain.database
        self.error_rate = chosen.error_rate if error_rate is None else error_rate
        self.noise = chosen.noise if noise is None else noise
        self.channel = channel_of(self.noise, ontology, self.error_rate, fidelity)
        self.tracker, limits = tracker_of(own.tracker, ontology, fidelity)
        self.summariser = Summariser(Layout(ontology), database, fidelity == "pydial", limits)
        self.masks = masks_of(own.masks, chosen.masks)
        self.summary_acts = SummaryActs(self.summariser, self.masks, own)
        self.user = chosen.user if user is None else user
        self.simulated = SlotFillingUser(ontology, behaviour_of(self.user))
        self.goals = GoalGenerator(database, *goals_of(goals))
        self.rewards = rewards_of(rewards)
        hypotheses = 1 if self.noise == "single" else HYPOTHESES
        self.language = LANGUAGES[language](self.domain, hypotheses)
        self.tokenizer = self.language.tokenizer  # type: ignore[misc]
        self.facts = self._facts()

    @classmethod
    def surroundings(cls, settings: Mapping[str, Any]) -> Hashable:
        """The state of the files of the domain, and of its settings."""
        files = {*domain_files(settings.get("domain", DOMAIN)), *yaml_files(*settings.values())}
        return tuple(fingerprint(file) for file in sorted(files) if file.is_file())

    def _facts(self) -> Facts:
        bounds, components = self.rewards.bounds(self.turns), self.rewards.components
        heard = {SYSTEM: self.turns + 1, USER: self.turns}
        return Facts(
            turn_limit=self.turns,
            longest=self.language.longest,
            heard={SYSTEM: heard, USER: {**heard, USER: self.turns + 1}},
            returns={SYSTEM: bounds, USER: bounds},
            charset=self.language.charset,
            hidden={SYSTEM: ("goal", "what the user really said")},
            may_end=(SYSTEM, USER),
            words=self.language.words,
            ordinary=self.language.ordinary,
            components={SYSTEM: components, USER: components},
        )

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> SlotFillingState:
        options = self.check_options(options)
        goal = self.goals.checked(fixed_goal(self.domain.ontology, options, self.goals.draw(rng)))
        user = fixed_patience(self.simulated.begin(goal, rng), options)
        belief, summary = self._unknown
        start = user, ("", user), belief.copy(), summary, GREETING
        state = SlotFillingState(goal, *start)
        self._plan_answer(state, rng)
        self._record(state, SYSTEM, self.language.say(GREETING, SYSTEM, rng))
        return state

    @cached_property
    def _unknown(self) -> tuple[SlotFillingBelief, Summary]:
        """The belief before anything is said."""
        belief = self.tracker.begin()
        return belief, self.summariser.summarise(belief)

    def _plan_answer(self, state: SlotFillingState, rng: np.random.Generator) -> None:
        """Let the simulated user react to the system's act, and plan its answer."""
        user = state.user_state.copy()
        self.simulated.hear(user, state.system_act, rng)
        answer = self.language.say(self.simulated.answer(user, rng), USER, rng)
        state.planned = (answer, user)

    def _record(
        self, state: SlotFillingState, speaker: str, said: str, heard: str | None = None
    ) -> None:
        other = said if heard is None else heard
        first, second = (said, other) if speaker == USER else (other, said)
        state.heard_by_user.append(Utterance(speaker, first))
        state.heard_by_system.append(Utterance(speaker, second))

    def speaker(self, state: SlotFillingState) -> str:
        return USER if state.user_speaks else SYSTEM

    def transcript(self, state: SlotFillingState, party: str) -> Sequence[Utterance]:
        if party == SYSTEM:
            return state.heard_by_system
        return [note_of(self, state.goal), *state.heard_by_user]

    def conditions(self, party: str) -> Sequence[str]:
        return conditions_of(self, party)

    def scenario(self, state: SlotFillingState, party: str) -> str:
        return goal_sentence(self, state.goal) if party == USER else ""

    @cached_property
    def english(self) -> Any:
        """The English in which the user is told its goal, whatever it speaks."""
        return LANGUAGES["english"](self.domain, 1)

    def situation(self, state: SlotFillingState, party: str) -> Any:
        """For the system what it believes, and what it has heard of the user last."""
        if party == USER:
            return super().situation(state, party)
        belief, heard = state.belief, state.heard_by_system
        vector = self.summariser.vector(belief, state.summary).astype(np.float64)
        last = next((line.text for line in reversed(heard) if line.speaker == USER), "")
        return np.round(vector, 6), belief.entity, sorted(belief.entities), last

    def speak(self, state: SlotFillingState, text: str, rng: np.random.Generator) -> Outcome:
        if not state.user_speaks:
            return self._system_says(state, text, rng)
        return self.hear_user(state, text, rng)[0]

    def hear_user(
        self, state: SlotFillingState, text: str, rng: np.random.Generator
    ) -> tuple[Outcome, Hypotheses]:
        """Let the user say `text`: what it has led to, and what the system has heard."""
        act, heard = self.user_says(state, text, rng)
        self.tracker.update(state.belief, state.system_act, heard)
        state.summary = self.summariser.summarise(state.belief)
        return self.conclude(state, act), heard

    def _system_says(self, state: SlotFillingState, text: str, rng: np.random.Generator) -> Outcome:
        state.user_speaks = True
        chosen = self._chosen(state, text)
        act, heard = self._understand(state, text, rng)
        state.system_act = act
        state.turns += 1
        self._record(state, SYSTEM, text, heard)
        self._note_alternative(state, chosen, act)
        if act.type == BYE:
            return self._end(state, "turn")
        self._plan_answer(state, rng)
        if state.turns < self.turns:
            return self._spoken
        self._take_in(state, state.simulated)
        return self._end(state, "turn")

    def _understand(
        self, state: SlotFillingState, text: str, rng: np.random.Generator
    ) -> tuple[Act, str]:
        """The act that the system's text is or becomes, and what the user hears of it."""
        chosen = self.summary_acts.by_phrase.get(text)
        if chosen is not None:
            act = self.acts[SYSTEM].act(state, chosen, rng)
        else:
            own = self.language.understand(text, SYSTEM)
            act = own or read_notation(text) or NULL
            if own is not None or act is NULL:
                return (act if act.type in SYSTEM_ACTS else NULL), text
        return act, self.language.say(act, SYSTEM, rng)

    def _chosen(self, state: SlotFillingState, text: str) -> str | None:
        """The summary act that the system says; None where it has said an act of its own."""
        noted, state.chosen = state.chosen, None
        number = self.summary_acts.by_phrase.get(text)
        if number is not None:
            return self.summary_acts.names[number]
        return noted[0] if noted is not None and noted[1] == text else None

    def _note_alternative(self, state: SlotFillingState, chosen: str | None, act: Act) -> None:
        """Another row is asked for until the system chooses to look for one, as in the original.

        A system that says acts of its own does so by naming a new row, or that there is none.
        """
        name = act.value("name") if act.type == "inform" else None
        looked = name is not None and name not in state.belief.entities
        if chosen == "inform_alternatives" or (chosen is None and looked):
            state.belief.alternatives = False

    def user_says(
        self, state: SlotFillingState, text: str, rng: np.random.Generator
    ) -> tuple[Act, Hypotheses]:
        """Utterance of the user, and what the system hears of it; it has yet to believe that."""
        state.user_speaks = False
        act = self.language.understand(text, USER) or read_notation(text) or NULL
        act = act if act.type in USER_ACTS else NULL
        if act.items:
            state.told |= {item.slot for item in act.items if item.value is not None}
        state.simulated = text == state.planned[0]
        self._take_in(state, state.simulated)
        state.replies += 1
        heard = self.channel.hear(act, rng)
        note_misheard(state, act, heard)
        self._record(state, USER, text, self.language.hear(text, heard, rng))
        return act, heard

    def conclude(self, state: SlotFillingState, act: Act) -> Outcome:
        """Outcome of the user's act, once the system believes what it has heard."""
        summary = state.summary
        if summary.method == "byalternatives" and summary.discourse not in ("thankyou", "ack"):
            state.belief.alternatives = True
        if act.type == BYE and state.replies > 1:
            return self._end(state, "closing")
        return _QUIET

    def findings(self, state: SlotFillingState) -> Findings:
        """The one domain's success and share of answered requests; and the rest."""
        return findings_of(self, state)

    def _take_in(self, state: SlotFillingState, simulated: bool) -> None:
        """The user's state after the system's act."""
        if simulated:
            state.user_state = state.planned[1].copy()
        else:
            listen(state.user_state, state.system_act)

    @cached_property
    def _spoken(self) -> Outcome:
        return self.rewards.on_turn()

    def _end(self, state: SlotFillingState, last: str) -> Outcome:
        checked = self.fidelity != "pydial"
        success = succeeded(state.user_state, self.domain.database, checked)
        return self.rewards.at_end(last, success)

    def static_constraint(self, party: str) -> Constraint | None:
        if party == USER:
            return self.language.grammar
        if not self.language.summaries:
            return AnyText()
        return None if any(self.masks) else self._phrases(self.summary_acts.unmasked)

    def union_constraint(self, party: str) -> Constraint:
        return self.static_constraint(party) or WordTrie(self.summary_acts.phrases)

    def constraint(self, state: SlotFillingState, party: str) -> Constraint:
        return self.static_constraint(party) or self._phrases(self.acts[SYSTEM].mask(state))

    def _phrases(self, mask: np.ndarray) -> WordTrie:
        return WordTrie(self.summary_acts.phrases[i] for i in np.flatnonzero(mask).tolist())

    def words(self) -> Sequence[str]:
        return self.language.vocabulary


_QUIET = outcome({})
