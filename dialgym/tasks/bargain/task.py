"""The rules of bargaining."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dialgym.errors import one_of, whole_number
from dialgym.io.objects import load
from dialgym.io.tables import fingerprint
from dialgym.language import AnyText, Constraint, Utterance, WordTrie
from dialgym.language.text import CHARSET, plain
from dialgym.simulators import Speaker
from dialgym.tasks.bargain.corpus import contexts_of, data_named, options_by_split, place_of
from dialgym.tasks.bargain.exact import measures
from dialgym.tasks.bargain.games import GAMES, Game, game_of
from dialgym.tasks.bargain.scenarios import fitting
from dialgym.tasks.bargain.types import (
    ACCEPT,
    ASK,
    INSIST,
    LEAVE,
    NONE,
    REJECT,
    TELL,
    BargainState,
    prior_offers,
)
from dialgym.tasks.bargain.understanding import OfferReader
from dialgym.tasks.base import SYSTEM, USER, Facts, Outcome, Task
from dialgym.tasks.batch import DialogueBatch
from dialgym.tasks.briefs import length_sentence, turns_sentence
from dialgym.tasks.splits import SPLITS

ROOM = "dialgym.tasks.bargain"
POLICIES = f"{ROOM}.policies"
SAID = ("i accept", "i reject that", "i insist on my offer", "what do you need most?", "i leave")
"""Texts of the acts from ACCEPT to LEAVE."""
GENERATED, EVERY = "generated", "people"
CONTEXTS = (GENERATED, EVERY, *SPLITS)
_NEGOTIATORS = {
    "conceding": f"{POLICIES}:Conceding",
    "tit-for-tat": f"{POLICIES}:TitForTat",
    "stubborn": f"{POLICIES}:Stubborn",
    "fair": f"{POLICIES}:Fair",
    "deceiving": f"{POLICIES}:Deceiving",
    "best-response": f"{POLICIES}:BestResponse",
    "bayes-response": f"{POLICIES}:BayesResponse",
    "random": f"{POLICIES}:RandomNegotiator",
}
_RULES = {
    "items": "You and the other one divide some books, hats and balls. Each thing is worth to you "
    "what you are told, and something else to the other one. If you agree you get what your share "
    "is worth to you, else nothing.",
    "goods": "You and the other one divide three packages each of food, water and firewood for a "
    "camping trip. You get what your share is worth to you; if you do not agree, 5 points.",
    "price": "You {trade} something at a list price that both know, for 40 to 110 % of it. You get "
    "10 points at the price that you want or a better one, and a point less for each 5 % of the "
    "list price that it is worse, but never less than nothing; nothing if you do not agree.",
}
_TRADES = {SYSTEM: "buy", USER: "sell"}


class Bargain(Task):
    """Divide things, or agree on a price, with another one who wants something else.

    What is on the table both know; what it is worth each party is told alone. They speak in turns,
    the `system` first. The dialogue is over (terminated) when an offer is accepted, which is a
    success; when somebody leaves; or after the last of the `turns`.

    Acts: propose (what one gets oneself; the rest is the other's), accept, reject, insist on one's
    last proposal, ask what the other needs, tell a need, leave. The last proposal stands, and can
    be accepted by the other party, until it is rejected or another takes its place. English is
    understood by rules (`dialgym.tasks.bargain.understanding`), shares and prices also by the
    offers that they refer to (``one more``, ``meet me halfway``); what is not understood, an
    acceptance where no offer of the other stands, and the like, cost a turn and change nothing.

    Rewards, at the end: a party's points, by its own values, as its component ``points``.

    Games:
        items: 5 to 7 books, hats and balls, 1 to 4 of a kind; all of them are worth 10 points to
            each party, and 0 without a deal. As in Deal or No Deal, nothing is worth nothing to
            both, and something is worth something to both.
        goods: three packages each of food, water and firewood; a package of what a party needs
            most is worth 5 points, then 4, then 3. Without a deal each has 5 points, as in CaSiNo.
        price: the system buys, the user sells. Prices are multiples of 5 % of the list price, from
            40 to 110 %. Each has a target: 10 points there, one less for each step away.

    Args:
        game: ``items``, ``goods`` or ``price``.
        turns: utterances of the system in a dialogue.
        constraint: what action masks allow: ``"acts"`` (texts of the acts that are possible with
            what is on the table), or None (any text).
        longest: characters of an utterance that are looked at, at least.
        contexts: ``generated``, all that the game can have, equally likely; ``people``, those of
            the negotiations of people in `data`, or of a split of them: ``train``,
            ``validation``, ``test``.
        data: the folder, zip or file of these: Deal or No Deal (items), CaSiNo (goods), Craigslist
            (price); None for what ``$DIALGYM_BARGAIN`` names. The generator ``corpus`` holds them
            again.

    Options of reset: ``table``, what there is (of each kind, or the list price); ``system`` and
    ``user``, the values of a party (of each kind, or the target in twentieths of the list price).
    What is left out is drawn among what can go with the rest.

    Versions:
        v0: the first, of dialgym 0.1. By version 2 of its rules, the present one, who concedes
            accepts less than half of the most no more, not even with the last turn; prices have
            more targets; more English is understood.

    Raises:
        ValueError: a setting is not one of the above.

    Source: the games of Lewis et al. (2017, "Deal or No Deal?"), Chawla et al. (2021, CaSiNo) and
    He et al. (2018, "Decoupling Strategy and Generation in Negotiation Dialogues"); points for a
    price are our own.
    """

    name = "Bargain"
    version = 2
    how_to_play = dict.fromkeys(
        (SYSTEM, USER), "You negotiate with another one, who wants something else."
    )
    for_people: ClassVar[Mapping[str, Any]] = {"constraint": None}
    games: ClassVar[Mapping[str, type[Game]]] = GAMES
    proposing = "To propose what you get yourself"
    options: ClassVar[tuple[str, ...]] = ("table", "system", "user")
    tokenizer = "word"
    speakers = {USER: _NEGOTIATORS, SYSTEM: _NEGOTIATORS}  # noqa: RUF012
    act_classes = {  # noqa: RUF012
        SYSTEM: f"{ROOM}.party_acts:SystemBargainActs",
        USER: f"{ROOM}.party_acts:UserBargainActs",
    }
    best_responses = {  # noqa: RUF012
        name: {"name": "best-response", "partner": name} for name in list(_NEGOTIATORS)[:5]
    }
    """By partner that draws nothing, the policy that nobody surpasses with it."""
    generators = {  # noqa: RUF012
        "corpus": f"{ROOM}.corpus:BargainCorpus",
        "halves": f"{POLICIES}:halves",
        "mixture": f"{POLICIES}:mixture",
    }
    hidden_fields = {SYSTEM: ("user",), USER: ("system",)}  # noqa: RUF012

    def __init__(
        self,
        game: str = "items",
        turns: int = 10,
        constraint: str | None = "acts",
        longest: int = 80,
        contexts: str = "generated",
        data: Any = None,
    ) -> None:
        one_of("game", game, tuple(self.games), self.name)
        one_of("contexts", contexts, CONTEXTS, self.name)
        one_of("constraint", constraint, ("acts", None), self.name)
        self.game, self.data = game_of(self.games[game]), data
        self.scenarios = self.game.scenarios
        if contexts != GENERATED:
            self.scenarios = contexts_of(data, self.game, None if contexts == EVERY else contexts)
            self.played = {"data": str(data_named(data))}
        self.turns = whole_number("turns", turns, self.name)
        self.constrained = constraint is not None
        self.general = (*SAID, *self.game.tells)
        self.texts = [self._texts(row) for row in range(len(self.game.tables))]
        self.said = np.array(self.texts, object)  # (C, A)
        self.understanding = OfferReader(self.game, self.texts)
        self.facts = self._facts(whole_number("longest", longest, self.name))

    @classmethod
    def surroundings(cls, settings: Mapping[str, Any]) -> str | None:
        """The state of the files of people's contexts."""
        if settings.get("contexts", GENERATED) == GENERATED:
            return None
        return fingerprint(place_of(settings.get("data")))

    def _texts(self, table: int) -> list[str]:
        """The text of each act, "" for a proposal that is impossible."""
        possible = self.game.outcome[0][table].tolist()
        proposed = [
            "" if outcome == NONE else self.game.proposal(self.game.tables[table], code)
            for code, outcome in enumerate(possible)
        ]
        return [*proposed, *self.general]

    @cached_property
    def _told(self) -> dict[str, list[str]]:
        """By party, what each profile is told."""
        return {
            party: [self.game.knowledge(*profile, at) for profile in self.game.profiles[at]]
            for at, party in enumerate(self.parties)
        }

    def _facts(self, longest: int) -> Facts:
        said = {text for row in self.texts for text in row}
        every = {party: said | set(told) for party, told in self._told.items()}
        heard = {SYSTEM: self.turns, USER: self.turns}
        words = {party: max(len(t.split()) for t in texts) for party, texts in every.items()}
        returns = (0.0, float(self.game.most))
        return Facts(
            turn_limit=self.turns,
            longest={p: max(longest, *map(len, texts)) for p, texts in every.items()},
            heard={party: {**heard, party: self.turns + 1} for party in self.parties},
            returns=dict.fromkeys(self.parties, returns),
            charset=CHARSET,
            hidden={SYSTEM: ("user",), USER: ("system",)},
            may_end=self.parties,
            words=dict.fromkeys(self.parties, words),
            components=dict.fromkeys(self.parties, ("points",)),
            metrics=("agreed", "points", "other", "pareto", "joint", "fairness", "turns"),
        )

    @cached_property
    def splits(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:  # type: ignore[override]
        """Contexts of people by split, where these are played."""
        played = self.scenarios is not self.game.scenarios
        return options_by_split(self.data, self.game) if played else {}

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> BargainState:
        system, user = self.draw(rng, options)
        return BargainState(system, user)

    def draw(self, rng: np.random.Generator, options: Mapping[str, Any] | None) -> tuple[int, int]:
        """Profiles of both parties; takes one whole number.

        Raises:
            ValueError: nothing is as the options say.
        """
        given = self.check_options(options)
        rows = fitting(self, given) if given else self.scenarios
        system, user = rows[rng.integers(len(rows))].tolist()
        return system, user

    def suppositions(self, state: BargainState, party: str) -> list[BargainState]:
        """See `dialgym.tasks.posterior.SupposesHidden`: by all values of the other that can be."""
        at = self.parties.index(party)
        known = (state.system, state.user)[at]
        found = []
        for pair in self.game.scenarios[self.game.scenarios[:, at] == known].tolist():
            other = state.copy()
            other.system, other.user = pair
            found.append(other)
        return found

    def begun(self, state: BargainState) -> BargainState:
        """The negotiation before anybody spoke."""
        return BargainState(state.system, state.user)

    def table(self, state: BargainState, party: int) -> int:
        """The row of what is on the table, as the party of that index knows it."""
        return int(self.game.table_of[party][state.user if party else state.system])

    def speaker(self, state: BargainState) -> str:
        return USER if state.waiting else SYSTEM

    def opening(self, party: str, profile: int) -> Utterance:
        """Knowledge of a party at the beginning, in words."""
        return Utterance(party, self._told[party][profile], private=True)

    def transcript(self, state: BargainState, party: str) -> Sequence[Utterance]:
        profile = state.system if party == SYSTEM else state.user
        return [self.opening(party, profile), *state.lines]

    def conditions(self, party: str) -> Sequence[str]:
        """Those of the game, those on turns, and how the acts are said."""
        said = self._sayings(0)
        return [
            self.rules(party),
            turns_sentence(self, party),
            *said,
            *length_sentence(self, party),
        ]

    def _sayings(self, table: int) -> list[str]:
        """Sentences on how acts are said about a table."""
        proposal = next(text for text in self.texts[table][::-1][len(self.general) :] if text)
        return [
            f"{self.proposing}, say for example: {proposal}.",
            f"Beside that you may say: {'; '.join(self.general)}.",
        ]

    def rules(self, party: str) -> str:
        """The rules of the game, as a party is told them."""
        return _RULES[self.game.name].format(trade=_TRADES[party])

    def speak(self, state: BargainState, text: str, rng: np.random.Generator) -> Outcome:
        party = int(state.waiting)
        state.lines.append(Utterance(self.parties[party], text))
        self.apply(state, self.read(state, text))
        if not state.over:
            return _OPEN
        parts = dict(zip(self.parties, ({"points": float(p)} for p in self.points(state))))
        return Outcome.of(parts, terminated=True, success=state.deal != NONE)

    def unclear(self, state: BargainState, text: str) -> str | None:
        """See `dialgym.simulators.human.unclear`."""
        code, offers, row = self.read(state, text), prior_offers(state), self._row(state)
        act = code - self.game.size
        if act in (ACCEPT, REJECT) and offers.other == NONE:
            return "No offer of the other one stands."
        if act == INSIST and offers.latest[1] == NONE:
            return "You have made no offer yet."
        if code != NONE:
            return None
        impossible = self.game.read(row, plain(text).lower(), offers) == NONE
        limits = [self.game.limits(self.game.tables[row])] if impossible else []
        return " ".join([*limits, *self._sayings(row)])

    def read(self, state: BargainState, text: str) -> int:
        """The act that a text of who has the floor is taken for, or NONE."""
        return self.understanding.read(self._row(state), text, prior_offers(state))

    def _row(self, state: BargainState) -> int:
        """The row of what is on the table, as who has the floor knows it."""
        return self.table(state, int(state.waiting))

    def apply(self, state: BargainState, code: int) -> None:
        """Change a state by an act of the party whose turn it is; NONE if it was not understood."""
        game, party = self.game, int(state.waiting)
        theirs = state.owner == 1 - party and state.open != NONE
        act = code - game.size
        state.asked = act == ASK
        state.understood += code != NONE
        state.turns += not state.waiting
        state.waiting = not state.waiting
        if 0 <= code < game.size:
            offer = int(game.outcome[party][self.table(state, party), code])
            state.open = state.last[party] = offer
            state.owner = party
            if state.first[party] == NONE:
                state.first[party] = offer
        elif act == ACCEPT and theirs:
            state.deal = state.open
        elif act == REJECT and theirs:
            state.open = state.owner = NONE
        elif act == INSIST and state.last[party] != NONE:
            state.open, state.owner = state.last[party], party
        elif act >= TELL:
            state.told[party] = act - TELL
        ended = party == 1 and state.turns == self.turns
        state.over = act == LEAVE or state.deal != NONE or ended

    def points(self, state: BargainState) -> tuple[int, int]:
        """Points of both parties as it stands: those of the deal, or of none."""
        if state.deal == NONE:
            return self.game.apart, self.game.apart
        system, user = self.game.points
        return int(system[state.system, state.deal]), int(user[state.user, state.deal])

    def situation(self, state: BargainState, party: str) -> Any:
        """Values of the party, offers and needs; not the words they were said in."""
        profile = state.system if party == SYSTEM else state.user
        offers = state.first, state.last, state.told, state.open, state.owner
        return profile, offers, state.asked, state.turns, state.waiting, state.deal, state.over

    def metrics(self, state: BargainState) -> Mapping[str, float]:
        """See `dialgym.tasks.bargain.exact.measures`; and the share of the turns that it took."""
        system, user = self.game.points[0][state.system], self.game.points[1][state.user]
        possible = self.game.possible[self.table(state, 0)]
        found = measures(system[possible], user[possible], self.points(state), self.game.most)
        if state.deal == NONE:
            found = {**dict.fromkeys(found, -1.0), "agreed": 0.0}
        return {**found, "turns": state.turns / self.turns}

    def batch(self, size: int, learner: str, simulator: Speaker) -> DialogueBatch | None:
        """A vectorised form, for either party against a scripted negotiator.

        A system that speaks at random may leave before the user has spoken: that is played singly.
        """
        negotiator: Any = load(f"{POLICIES}:Negotiator", f"batch of {self.name}")
        party = self.parties.index(learner)
        if not isinstance(simulator, negotiator) or (party and simulator.draws):  # type: ignore[attr-defined]
            return None
        form: Any = load(f"{ROOM}.batch:BargainBatch", f"batch of {self.name}")
        batch: DialogueBatch = form(self, size, party, simulator)
        return batch

    def static_constraint(self, party: str) -> Constraint | None:
        return None if self.constrained else AnyText()

    def union_constraint(self, party: str) -> Constraint:
        return self.static_constraint(party) or self._union

    def constraint(self, state: BargainState, party: str) -> Constraint:
        return self.constraint_of(self.table(state, self.parties.index(party)))

    def constraint_of(self, table: int) -> Constraint:
        """Texts of the acts that are possible with a table."""
        return self._tries[table] if self.constrained else AnyText()

    @cached_property
    def _tries(self) -> list[WordTrie]:
        return [WordTrie(filter(None, texts)) for texts in self.texts]

    @cached_property
    def _union(self) -> WordTrie:
        return WordTrie(dict.fromkeys(text for row in self.texts for text in row if text))

    def words(self) -> Sequence[str]:
        """Those of all acts, and of what the parties are told."""
        said = (text for row in self.texts for text in row)
        told = (text for known in self._told.values() for text in known)
        texts = [*said, *told]
        return tuple(dict.fromkeys(word for text in texts for word in text.split()))


_OPEN = Outcome.of({SYSTEM: {}, USER: {}})
