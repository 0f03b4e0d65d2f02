"""The rules of slot filling."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from dialgym.errors import one_of
from dialgym.language import AnyText, Constraint, Utterance
from dialgym.language.acts import Act, Item, parse_act, print_act, print_hypotheses
from dialgym.tasks.base import SYSTEM, USER, Facts, Outcome, Task
from dialgym.tasks.slot_filling import extent, policies
from dialgym.tasks.slot_filling.acts import SummaryActs
from dialgym.tasks.slot_filling.behaviour import USERS, Behaviour
from dialgym.tasks.slot_filling.domains import load_domain
from dialgym.tasks.slot_filling.evaluation import CLOSING, SUCCESS, TURN, bonus, succeeded
from dialgym.tasks.slot_filling.goals import Goal, GoalGenerator
from dialgym.tasks.slot_filling.noise import FIDELITIES, STATISTICS, ListChannel, SingleChannel
from dialgym.tasks.slot_filling.options import fixed_goal, fixed_patience
from dialgym.tasks.slot_filling.settings import setting
from dialgym.tasks.slot_filling.summary import Summariser
from dialgym.tasks.slot_filling.tracker import FocusTracker
from dialgym.tasks.slot_filling.types import NULL, SlotFillingState
from dialgym.tasks.slot_filling.user import AgendaUser
from dialgym.tasks.slot_filling.venues import listen

GREETING = Act("hello")
BYE = "bye"
SYSTEM_ACTS = ("hello", "bye", "request", "confirm", "select", "inform", "reqmore", "repeat")
USER_ACTS = ("hello", "bye", "inform", "request", "confirm", "affirm", "negate", "deny", "reqalts",
             "thankyou", "ack", "repeat", "silence", "restart")  # fmt: skip
MASKED = ("repeat", "restart")


class SlotFilling(Task):
    """Find a row of a database for a user who is heard through noise: PyDial's benchmark.

    The user wants a restaurant, say, of a certain food, area and price range, and its phone
    number; the `system` asks, confirms, offers and tells. Utterances are dialogue acts in text,
    ``request(area)``, ``inform(name="the nirala",food="indian")``. The system greets first, by
    itself. It hears the user through a channel that may mistake an act for another, as a list of
    acts with probabilities, ``inform(food="thai") 0.83 | null() 0.17``; what it believes is
    tracked by the rules. Whatever is no act that the speaker knows counts as ``null()``.

    Rewards, the same for both: -1 for each utterance of the system and for its answer to the
    user's goodbye; 20 at the end if the row named last meets the user's goal as it is by then, and
    all requests are answered. The dialogue ends (terminated) with a ``bye()`` of either, that of
    the user's first utterance aside, or after `turns` utterances of the system.

    Args:
        domain: a built-in domain, one of PyDial's by name, or the path of one's files; see
            `load_domain`. `SlotFilling.domain.source` says which it is.
        env: the setting of the benchmark, 1 to 6, for what follows and is None.
        error_rate: how often the best hypothesis is wrong, 0 to 1.
        noise: ``"set1"`` or ``"set3"``, lists of hypotheses; ``"single"``, only one.
        masks: whether rules restrict the summary acts.
        user: how the simulated user behaves: ``"standard"`` or ``"unfriendly"``.
        fidelity: ``"correct"``, or ``"pydial"`` with those faults of the original that change
            results, to compare with its figures.
        turns: utterances of the system in a dialogue.

    Options of reset: ``constraints``, a mapping of slots to values or ``dontcare``; ``requests``,
    a sequence of slots; ``patience``, how often the user puts up with the same act.

    Raises:
        ValueError: a setting is not one of the above, or there is no such domain.

    Source: Casanueva et al. 2017, arXiv 1711.11023.
    """

    name = "SlotFilling"
    options = ("constraints", "requests", "patience")
    speakers = {USER: policies.USERS, SYSTEM: policies.POLICIES}  # noqa: RUF012

    def __init__(
        self,
        domain: str | PathLike[str] = "Restaurants",
        env: int = 1,
        error_rate: float | None = None,
        noise: str | None = None,
        masks: bool | None = None,
        user: str | None = None,
        fidelity: str = "correct",
        turns: int = 25,
    ) -> None:
        one_of("fidelity", fidelity, FIDELITIES, self.name)
        if not isinstance(turns, int) or turns < 1:
            raise ValueError(f"turns of {self.name} must be a whole number from 1; got {turns!r}.")
        chosen = setting(env)
        self.env, self.fidelity, self.turns = env, fidelity, turns
        self.domain = load_domain(domain)
        ontology, database = self.domain.ontology, self.domain.database
        self.error_rate = chosen.error_rate if error_rate is None else error_rate
        self.noise = noise or chosen.noise or "single"
        self.channel = self._channel()
        self.tracker = FocusTracker(ontology, fidelity)
        self.summariser = Summariser(self.tracker.layout, database, fidelity == "pydial")
        self.masks = chosen.masks if masks is None else masks
        self.acts = SummaryActs(self.summariser, self.masks)
        self.user = chosen.user if user is None else user
        one_of("user", self.user, USERS, self.name)
        self.simulated = AgendaUser(ontology, Behaviour(dict(USERS[self.user])))
        self.goals = GoalGenerator(database)
        self.facts = self._facts()

    def _channel(self) -> SingleChannel | ListChannel:
        ontology = self.domain.ontology
        one_of("noise", self.noise, (*STATISTICS, "single"), self.name)
        if self.noise == "single":
            return SingleChannel(ontology, self.error_rate)
        return ListChannel(ontology, self.error_rate, STATISTICS[self.noise], self.fidelity)

    def _facts(self) -> Facts:
        lowest, highest = -float(self.turns), SUCCESS - TURN.amount
        said = extent.HYPOTHESES * (extent.longest_user_act(self.domain) + len(" 0.00 | "))
        heard = {SYSTEM: self.turns + 1, USER: self.turns}
        return Facts(
            turn_limit=self.turns,
            longest={SYSTEM: extent.longest_act(self.domain), USER: said},
            heard={SYSTEM: heard, USER: {**heard, USER: self.turns + 1}},
            returns={SYSTEM: (lowest, highest), USER: (lowest, highest)},
            charset=extent.charset(self.domain),
            hidden={SYSTEM: ("goal", "what the user really said")},
            may_end=(SYSTEM, USER),
        )

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> SlotFillingState:
        options = self.check_options(options)
        goal = fixed_goal(self.domain.ontology, options, self.goals.draw(rng))
        mind = fixed_patience(self.simulated.begin(goal, rng), options)
        belief = self.tracker.begin()
        state = SlotFillingState(
            mind, ("", mind), belief, self.summariser.summarise(belief), GREETING,
            goal=(Utterance(USER, _note(goal), private=True),),
        )  # fmt: skip
        self._look_ahead(state, rng)
        self._record(state, SYSTEM, print_act(GREETING))
        return state

    def _look_ahead(self, state: SlotFillingState, rng: np.random.Generator) -> None:
        """Let the simulated user make up its mind about the system's act."""
        mind = state.mind.copy()
        self.simulated.hear(mind, state.system_act, rng)
        state.ahead = (print_act(self.simulated.answer(mind, rng)), mind)

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
        return [*state.goal, *state.heard_by_user]

    def speak(self, state: SlotFillingState, text: str, rng: np.random.Generator) -> Outcome:
        say = self._user_says if state.user_speaks else self._system_says
        state.user_speaks = not state.user_speaks
        return say(state, text, rng)

    def _system_says(self, state: SlotFillingState, text: str, rng: np.random.Generator) -> Outcome:
        act = _read(text, SYSTEM_ACTS)
        state.system_act = act
        state.turns += 1
        self._record(state, SYSTEM, text)
        self._note_alternative(state, act)
        components = TURN.charge()
        if act.type == BYE:
            return self._end(state, components)
        self._look_ahead(state, rng)
        if state.turns < self.turns:
            return _outcome(components)
        self._take_in(state, state.simulated)
        return self._end(state, components)

    def _note_alternative(self, state: SlotFillingState, act: Act) -> None:
        """Another row was asked for until one is given, or it is said that there is none."""
        name = act.value("name") if act.type == "inform" else None
        if name is not None and name not in state.belief.venues:
            state.belief.alternatives = False

    def _user_says(self, state: SlotFillingState, text: str, rng: np.random.Generator) -> Outcome:
        act = _read(text, USER_ACTS)
        state.simulated = text == state.ahead[0]
        self._take_in(state, state.simulated)
        state.replies += 1
        heard = self.channel.hear(act, rng)
        self._record(state, USER, text, print_hypotheses(heard))
        self.tracker.update(state.belief, state.system_act, heard)
        summary = state.summary = self.summariser.summarise(state.belief)
        if summary.method == "byalternatives" and summary.discourse not in ("thankyou", "ack"):
            state.belief.alternatives = True
        if act.type == BYE and state.replies > 1:
            return self._end(state, CLOSING.charge())
        return _outcome({})

    def _take_in(self, state: SlotFillingState, simulated: bool) -> None:
        """What the user has in mind after the system's act."""
        if simulated:
            state.mind = state.ahead[1].copy()
        else:
            listen(state.mind, state.system_act)

    def _end(self, state: SlotFillingState, components: dict[str, float]) -> Outcome:
        success = succeeded(state.mind, self.domain.database)
        return _outcome({**components, **bonus(success)}, True, success)

    def static_constraint(self, party: str) -> Constraint | None:
        return AnyText()

    @property
    def act_names(self) -> tuple[str, ...]:
        """The names of the summary acts."""
        return self.acts.names

    def belief(self, state: SlotFillingState) -> np.ndarray:
        """(belief_size,) float32: what the system believes; see `Summariser.vector`."""
        return self.summariser.vector(state.belief, state.summary)

    def belief_size(self) -> int:
        """Length of the belief vector."""
        return self.domain.ontology.belief_size

    def act_mask(self, state: SlotFillingState) -> np.ndarray:
        """(3n+7,) bool: the summary acts that can be chosen."""
        return self.acts.mask(state.belief, state.summary)

    def act_text(self, state: SlotFillingState, index: int, rng: np.random.Generator) -> str:
        """What the system says by choosing a summary act."""
        name = self.acts.names[index]
        return print_act(self.acts.act(name, state.belief, state.summary, state.system_act, rng))


def _read(text: str, known: tuple[str, ...]) -> Act:
    """The act of a text; null() if it is none, or of a type that the speaker does not know."""
    try:
        act = parse_act(text)
    except ValueError:
        return NULL
    return act if act.type in known else NULL


def _outcome(
    components: dict[str, float], terminated: bool = False, success: bool | None = None
) -> Outcome:
    reward = sum(components.values())
    return Outcome({SYSTEM: reward, USER: reward}, terminated, False, components, success)


def _note(goal: Goal) -> str:
    """What the user wants, as acts."""
    wants = Act("inform", tuple([Item(*pair) for pair in goal.constraints.items()]))
    asks = Act("request", tuple([Item(slot) for slot in goal.requests]))
    return f"{print_act(wants)} {print_act(asks)}"
