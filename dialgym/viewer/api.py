"""Requests and answers of the viewer as plain values, without HTTP."""

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dialgym.datasets import Dataset, collect
from dialgym.errors import unknown
from dialgym.io.cache import LRU
from dialgym.registry import RegistryEntry, entries
from dialgym.rollouts.player import rules_of
from dialgym.rollouts.policies import named_policies
from dialgym.tasks.lookup import parse_options
from dialgym.viewer.chat_session import ChatChoice, ChatSession, described, keep_game
from dialgym.viewer.inputs import DIALOGUES, RUN, SCORES, ViewerInputs
from dialgym.viewer.lines import picture_address
from dialgym.viewer.listing import Listing
from dialgym.viewer.pairs import Comparison, Side
from dialgym.viewer.query import NotHereError, Query
from dialgym.viewer.ratings import SUCCESSES, Rater, Ratings, success_row
from dialgym.viewer.replay import replayed
from dialgym.viewer.training_runs import RunFolder
from dialgym.views.speakers import other_party

MOST_EPISODES = 200
MOST_HELD = 64  # dialogues under way, and comparisons, that are remembered
ChatReply = Callable[[str, list[str]], str]
Values = Callable[[Dataset], dict[int, dict[str, float]]]


@dataclass
class Viewer:
    """State of the viewer: its inputs, ratings and dialogues under way.

    Attributes:
        inputs: runs, data sets and results.
        ratings: of replies.
        settings: of environments that are played in the browser.
        chat_reply: a language model's reply to a text and the utterances before; None without one.
        games: folder for dialogues of people as a data set; None to keep none.
        values: a model's value estimates of turns in a dataset of one dialogue, by index.
    """

    inputs: ViewerInputs
    ratings: Ratings
    settings: Mapping[str, Any] = field(default_factory=dict)
    chat_reply: ChatReply | None = None
    values: Values | None = None
    games: Path | None = None

    def __post_init__(self) -> None:
        self.rater = Rater(self.ratings)
        self._sessions: LRU[ChatSession] = LRU(MOST_HELD)
        self._comparisons: LRU[Comparison] = LRU(MOST_HELD)

    # Inputs

    def sources(self, query: Query) -> dict[str, Any]:
        """All inputs, the ids of environments, and the number of ratings."""
        return {
            "sources": [source.about() for source in [*self.inputs.sources.values()]],
            "envs": _choices(),
            "ratings": self.ratings.counts(),
            "chat": self.chat_reply is not None,
            "settings": {key: str(value) for key, value in self.settings.items()},
        }

    def page(self, query: Query) -> dict[str, Any]:
        """A page of stored dialogues; see `Listing.page`."""
        return self._listing(query).page(query)

    def analysis(self, query: Query) -> dict[str, Any]:
        """Success by domain, unanswered requests, misheard acts, loops and failures."""
        return self._listing(query).analysis

    def dialogue(self, query: Query) -> dict[str, Any]:
        """A stored dialogue, with the scores that its replies were given."""
        listing, row = self._listing(query), query.integer("row")
        return {**listing.dialogue(row), "scores": self.rater.scores(listing, row)}

    def replay(self, query: Query) -> dict[str, Any]:
        """A replayed dialogue; see `replayed`. With `values`, those of the model."""
        listing, row = self._listing(query), query.integer("row")
        one = listing.select(row)
        replay = replayed(one)
        return replay if self.values is None else self._valued(replay, one)

    def run(self, query: Query) -> dict[str, Any]:
        """A training run as it stands."""
        run: RunFolder = self.inputs.find(query.integer("source"), RUN)
        return run.shown()

    def samples(self, query: Query) -> dict[str, Any]:
        """The sample dialogues of a run at some timesteps."""
        run: RunFolder = self.inputs.find(query.integer("source"), RUN)
        return {"dialogues": run.dialogues(query.integer("timesteps"))}

    def results(self, query: Query) -> dict[str, Any]:
        """Scores of policies, with the return of each episode."""
        results = self.inputs.find(query.integer("source"), SCORES)
        return {"results": [result.as_dict() | {"name": result.name} for result in results]}

    # Two policies on the same seeds

    def policies(self, query: Query) -> dict[str, Any]:
        """Policies that can play an environment: registered names, and runs."""
        entry = query.entry("env")
        names = list(named_policies(rules_of(entry, self.settings), "system", entry.view))
        fitting = [name for name, run in self._runs(names).items() if run.fits(entry)]
        return {"policies": names, "runs": fitting}

    def compare(self, query: Query) -> dict[str, Any]:
        """Compare two sides; each is rows of a data set, or a policy that plays now."""
        first, second = (self._side(query.nested(name), query) for name in ("first", "second"))
        made = Comparison((first, second))
        number = secrets.token_hex(8)
        self._comparisons.keep(number, made)
        return {"comparison": number, **made.shown()}

    def pair(self, query: Query) -> dict[str, Any]:
        """Two dialogues of one seed, with the scores that their replies were given."""
        made, number = self._comparison(query), query.integer("pair")
        pair = made.dialogues(number)
        for dialogue, side in zip(pair["dialogues"], made.sides):
            dialogue["scores"] = self.rater.scores(side.listing, dialogue["row"])
        return pair

    # Ratings

    def score(self, query: Query) -> dict[str, Any]:
        """Give a reply 1 to 5, or 0 to take the number back."""
        row, score = query.integer("row"), query.integer("score", 0)
        self.rater.score(self._listing(query), row, query.integer("place"), score or None)
        return self.ratings.counts()

    def next_pair(self, query: Query) -> dict[str, Any]:
        """The next two replies that have not been compared."""
        return self.rater.next(self._comparison(query))

    def prefer(self, query: Query) -> dict[str, Any]:
        """Say which reply of a pair is better."""
        verdict = query.choice("verdict", ("left", "right", "tie"))
        return self.rater.prefer(self._comparison(query), query.integer("pair"), verdict)

    def unrate(self, query: Query) -> dict[str, Any]:
        """Remove a rating."""
        if not self.ratings.remove(query.text("key")):
            raise NotHereError("there is no such rating.")
        return self.ratings.counts()

    # A person plays

    def about(self, query: Query) -> dict[str, Any]:
        """An environment, before a dialogue begins."""
        facts = described(query.entry("env"))
        return {**facts, "runs": list(self._runs(*facts["speakers"].values()))}

    def begin(self, query: Query) -> dict[str, Any]:
        """Begin a dialogue."""
        seed = query.integer("seed") if "seed" in query else secrets.randbelow(2**31)
        entry, party = query.entry("env"), query.text("party", "system")
        options = filter(None, map(str.strip, query.text("options", "").split(";")))
        wanted = ChatChoice(
            entry,
            party,
            self._against(query.text("against", ""), entry, party),
            seed,
            parse_options(rules_of(entry, self.settings), options, "options"),
            self.settings,
        )
        number = secrets.token_hex(8)
        session = ChatSession(wanted)
        self._sessions.keep(number, session)
        return {"game": number, **session.shown()}

    def say(self, query: Query) -> dict[str, Any]:
        """Say a text, or an act by its number."""
        session = self._session(query)
        refused = None
        if "act" in query:
            session.choose(query.integer("act"))
        else:
            refused = session.say(query.text("text", ""), query.flag("sure"))
        if session.game.over and self.games is not None:
            file = str(keep_game(session, self.games, query.text("game")))
            return {"refused": None, "kept": file, **session.shown()}
        text, doubt = (None, None) if refused is None else refused
        return {"refused": text, "doubt": doubt, **session.shown()}

    def undo(self, query: Query) -> dict[str, Any]:
        """Take the last utterance back."""
        session = self._session(query)
        session.undo()
        return session.shown()

    def hint(self, query: Query) -> dict[str, Any]:
        """Reply of the expert."""
        return {"hint": self._session(query).hint()}

    def judge(self, query: Query) -> dict[str, Any]:
        """Say if the user was served, at the end of a dialogue; see `SUCCESSES`."""
        session = self._session(query)
        if not session.game.over:
            raise ValueError("the dialogue is not over: who was served is asked at its end.")
        texts, about = session.spoken(), session.choice
        row = success_row(
            texts, query.flag("served"), session.entry.id, session.settings, about.seed
        )
        self.ratings.put(SUCCESSES, row)
        return self.ratings.counts()

    def picture(self, query: Query) -> dict[str, Any]:
        """The picture of a dialogue, as the address of a PNG file."""
        return {"picture": picture_address(self._session(query).picture())}

    def chat(self, query: Query) -> dict[str, Any]:
        """Reply of the language model."""
        if self.chat_reply is None:
            raise NotHereError("there is no language model; give one with --model.")
        return {"reply": self.chat_reply(query.text("text"), query.texts("history"))}

    def _valued(self, replay: dict[str, Any], one: Dataset) -> dict[str, Any]:
        """A dialogue with the model's value estimates of its turns, if the model has them."""
        assert self.values is not None
        try:
            for turn, value in self.values(one).items():
                replay["turns"].setdefault(turn, {}).update(value)
        except (ValueError, RuntimeError) as error:  # another environment than the model's
            replay["note"] = str(error)
        return replay

    def _listing(self, query: Query) -> Listing:
        listing: Listing = self.inputs.find(query.integer("source"), DIALOGUES)
        return listing

    def _comparison(self, query: Query) -> Comparison:
        comparison = self._comparisons.get(query.text("comparison"))
        if comparison is None:
            raise NotHereError("this comparison is no longer there; make it again.")
        return comparison

    def _session(self, query: Query) -> ChatSession:
        session = self._sessions.get(query.text("game"))
        if session is None:
            raise NotHereError("this dialogue is no longer there; begin another one.")
        return session

    def _side(self, side: Query, whole: Query) -> Side:
        if "source" in side:
            number = side.integer("source")
            listing: Listing = self.inputs.find(number, DIALOGUES)
            rows = listing.rows(side)
            name = side.text("policy", self.inputs.sources[number].name)
            return Side(name, number, listing, rows)
        name = side.text("policy")
        episodes = whole.integer("episodes", 20, 1, MOST_EPISODES)
        entry = whole.entry("env")
        dataset = self._played(name, entry, episodes, whole.integer("seed", 0))
        listing = Listing(dataset)
        title = f"{name} on {entry.row.name}"
        source = self.inputs.add(DIALOGUES, title, "", listing)
        return Side(name, source.number, listing, listing.rows(Query({})))

    def _runs(self, *known: Collection[str]) -> dict[str, RunFolder]:
        """The runs that can play, by name; with ``run`` before it where a speaker has that name."""
        names = {name for each in known for name in each}
        runs = {name: run for name, run in self.inputs.runs().items() if run.plays()}
        return {f"run {name}" if name in names else name: run for name, run in runs.items()}

    def _played(self, name: str, entry: RegistryEntry, episodes: int, seed: int) -> Dataset:
        known = named_policies(rules_of(entry, self.settings), "system", entry.view)
        runs = self._runs(known)
        policy = str(runs[name].folder) if name in runs else name
        if name not in {*known, *runs}:
            raise unknown("policy", name, [*known, *runs])
        return collect(
            entry,
            policy,
            episodes,
            seed,
            env_kwargs=self.settings,
            name=name,
            deterministic=True,
            num_envs=min(episodes, 64),
            trust=self.inputs.trust,
        )

    def _against(self, name: str, entry: RegistryEntry, party: str) -> Any:
        """A registered speaker of the other party, the model of a run, or None for the default."""
        task = rules_of(entry, self.settings)
        other = other_party(task, party)
        known = task.speakers.get(other, {})
        runs = self._runs(*task.speakers.values())
        if name in runs:
            return str(runs[name].folder)
        if name and name not in known:
            raise unknown(f"speaker for the {other}", name, [*known, *runs], task.name)
        return name or None


def _choices() -> list[dict[str, str]]:
    """The environments by their first view, and all ids."""
    return [
        {"env": entry.id, "view": entry.view, "row": entry.row.name, "about": entry.row.description}
        for entry in entries().values()
    ]


def open_viewer(
    paths: Sequence[str],
    ratings: Path,
    settings: Mapping[str, Any] | None = None,
    trust: bool = False,
    chat_reply: ChatReply | None = None,
    values: Values | None = None,
    games: Path | None = None,
) -> Viewer:
    """The viewer of some runs, data sets and results; see `ViewerInputs` and `Viewer`.

    Raises:
        FileNotFoundError, ValueError: there is nothing at a path, or nothing that can be shown.
    """
    return Viewer(
        ViewerInputs(paths, trust), Ratings(ratings), settings or {}, chat_reply, values, games
    )
