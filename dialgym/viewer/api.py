"""What the page can ask of the viewer: plain requests, plain answers, nothing of HTTP."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dialgym.datasets import Dataset, collect
from dialgym.errors import unknown
from dialgym.io.cache import LRU
from dialgym.registry import RegistryEntry, entries, make_task
from dialgym.rollouts.policies import named_policies
from dialgym.viewer.asked import Asked, NotHereError
from dialgym.viewer.kept import keep_game
from dialgym.viewer.lines import picture_address
from dialgym.viewer.listing import Listing
from dialgym.viewer.pairs import Comparison, Side
from dialgym.viewer.rating import Rater
from dialgym.viewer.ratings import Ratings
from dialgym.viewer.replay import replayed
from dialgym.viewer.runs import Run
from dialgym.viewer.seats import Seat, Wanted, described, read_options
from dialgym.viewer.sources import DIALOGUES, RUN, SCORES, Shelf
from dialgym.views.dialogue import other_party

MOST_EPISODES = 200
MOST_HELD = 64  # dialogues under way, and comparisons, that are remembered
Talk = Callable[[str, list[str]], str]
Values = Callable[[Dataset], dict[int, dict[str, float]]]


@dataclass
class Viewer:
    """All that is shown, and what people do with it.

    Attributes:
        shelf: what the viewer was given.
        ratings: where ratings are kept.
        settings: of the environments that are played in the browser.
        talk: what a language model says to a text and the utterances before; None without a model.
        games: where dialogues that people have held are kept as a data set; None for nowhere.
        values: what a model thinks of the learner's turns in a dataset of one dialogue, by place.
    """

    shelf: Shelf
    ratings: Ratings
    settings: Mapping[str, Any] = field(default_factory=dict)
    talk: Talk | None = None
    values: Values | None = None
    games: Path | None = None

    def __post_init__(self) -> None:
        self.rater = Rater(self.ratings)
        self._seats: LRU[Seat] = LRU(MOST_HELD)
        self._comparisons: LRU[Comparison] = LRU(MOST_HELD)

    # What there is

    def sources(self, asked: Asked) -> dict[str, Any]:
        """All sources, the ids of environments, and how many ratings there are."""
        return {
            "sources": [source.about() for source in [*self.shelf.sources.values()]],
            "envs": _choices(),
            "ratings": self.ratings.counts(),
            "chat": self.talk is not None,
            "settings": {key: str(value) for key, value in self.settings.items()},
        }

    def page(self, asked: Asked) -> dict[str, Any]:
        """A page of stored dialogues; see `Listing.page`."""
        return self._listing(asked).page(asked)

    def dialogue(self, asked: Asked) -> dict[str, Any]:
        """A stored dialogue, with the scores that its replies were given."""
        listing, row = self._listing(asked), asked.whole("row")
        return {**listing.dialogue(row), "scores": self.rater.scores(listing, row)}

    def replay(self, asked: Asked) -> dict[str, Any]:
        """The same held once more; see `replayed`. With `values`, those of the model."""
        listing, row = self._listing(asked), asked.whole("row")
        one = listing.one(row)
        found = replayed(one)
        return found if self.values is None else self._valued(found, one)

    def run(self, asked: Asked) -> dict[str, Any]:
        """A training run as it stands."""
        found: Run = self.shelf.find(asked.whole("source"), RUN)
        return found.shown()

    def samples(self, asked: Asked) -> dict[str, Any]:
        """The sample dialogues of a run at some timesteps."""
        found: Run = self.shelf.find(asked.whole("source"), RUN)
        return {"dialogues": found.dialogues(asked.whole("timesteps"))}

    def results(self, asked: Asked) -> dict[str, Any]:
        """Scores of policies, with the return of each episode."""
        results = self.shelf.find(asked.whole("source"), SCORES)
        return {"results": [result.as_dict() | {"name": result.name} for result in results]}

    # Two policies on the same seeds

    def policies(self, asked: Asked) -> dict[str, Any]:
        """Who can play an environment: registered names, and runs."""
        entry = asked.entry("env")
        names = list(named_policies(make_task(entry, self.settings), "system", entry.view))
        runs = {name: run for name, run in self.shelf.runs().items() if run.plays()}
        fitting = [name for name, run in runs.items() if run.fits(entry)]
        return {"policies": names, "runs": fitting}

    def compare(self, asked: Asked) -> dict[str, Any]:
        """Compare two sides; each is rows of a data set, or a policy that plays now."""
        first, second = (self._side(asked.part(name), asked) for name in ("first", "second"))
        made = Comparison((first, second))
        number = secrets.token_hex(8)
        self._comparisons.keep(number, made)
        return {"comparison": number, **made.shown()}

    def pair(self, asked: Asked) -> dict[str, Any]:
        """Two dialogues of one seed, with the scores that their replies were given."""
        made, number = self._comparison(asked), asked.whole("pair")
        found = made.dialogues(number)
        for dialogue, side in zip(found["dialogues"], made.sides):
            dialogue["scores"] = self.rater.scores(side.listing, dialogue["row"])
        return found

    # Ratings

    def score(self, asked: Asked) -> dict[str, Any]:
        """Give a reply 1 to 5, or 0 to take the number back."""
        row, score = asked.whole("row"), asked.whole("score", 0)
        self.rater.score(self._listing(asked), row, asked.whole("place"), score or None)
        return self.ratings.counts()

    def next_pair(self, asked: Asked) -> dict[str, Any]:
        """The next two replies that nobody has compared yet."""
        return self.rater.next(self._comparison(asked))

    def prefer(self, asked: Asked) -> dict[str, Any]:
        """Say which reply of a pair is better."""
        verdict = asked.choice("verdict", ("left", "right", "tie"))
        return self.rater.prefer(self._comparison(asked), asked.whole("pair"), verdict)

    def unrate(self, asked: Asked) -> dict[str, Any]:
        """Take a rating back."""
        if not self.ratings.remove(asked.text("key")):
            raise NotHereError("there is no such rating.")
        return self.ratings.counts()

    # A person plays

    def about(self, asked: Asked) -> dict[str, Any]:
        """An environment, before a dialogue begins."""
        found = described(asked.entry("env"))
        runs = [name for name, run in self.shelf.runs().items() if run.plays()]
        return {**found, "runs": runs}

    def begin(self, asked: Asked) -> dict[str, Any]:
        """Begin a dialogue."""
        seed = asked.whole("seed") if "seed" in asked else secrets.randbelow(2**31)
        entry, party = asked.entry("env"), asked.text("party", "system")
        wanted = Wanted(
            entry,
            party,
            self._against(asked.text("against", ""), entry, party),
            seed,
            read_options(asked.text("options", "")),
            self.settings,
        )
        number = secrets.token_hex(8)
        seat = Seat(wanted)
        self._seats.keep(number, seat)
        return {"game": number, **seat.shown()}

    def say(self, asked: Asked) -> dict[str, Any]:
        """Say a text, or an act by its number."""
        seat = self._seat(asked)
        refused = None
        if "act" in asked:
            seat.choose(asked.whole("act"))
        else:
            refused = seat.say(asked.text("text", ""), asked.flag("sure"))
        if seat.game.over and self.games is not None:
            kept = str(keep_game(seat, self.games, asked.text("game")))
            return {"refused": refused, "kept": kept, **seat.shown()}
        return {"refused": refused, **seat.shown()}

    def undo(self, asked: Asked) -> dict[str, Any]:
        """Take the last utterance back."""
        seat = self._seat(asked)
        seat.undo()
        return seat.shown()

    def hint(self, asked: Asked) -> dict[str, Any]:
        """What an expert would say."""
        return {"hint": self._seat(asked).hint()}

    def picture(self, asked: Asked) -> dict[str, Any]:
        """The picture of a dialogue, as the address of a PNG file."""
        return {"picture": picture_address(self._seat(asked).picture())}

    def chat(self, asked: Asked) -> dict[str, Any]:
        """What the language model says."""
        if self.talk is None:
            raise NotHereError("there is no language model; give one with --model.")
        return {"reply": self.talk(asked.text("text"), asked.texts("history"))}

    def _valued(self, found: dict[str, Any], one: Dataset) -> dict[str, Any]:
        """What was found of a dialogue with what the model thinks of its turns, if it can."""
        assert self.values is not None
        try:
            for place, value in self.values(one).items():
                found["turns"].setdefault(place, {}).update(value)
        except (ValueError, RuntimeError) as error:  # another environment than the model's
            found["note"] = str(error)
        return found

    def _listing(self, asked: Asked) -> Listing:
        found: Listing = self.shelf.find(asked.whole("source"), DIALOGUES)
        return found

    def _comparison(self, asked: Asked) -> Comparison:
        found = self._comparisons.get(asked.text("comparison"))
        if found is None:
            raise NotHereError("this comparison is no longer there; make it again.")
        return found

    def _seat(self, asked: Asked) -> Seat:
        found = self._seats.get(asked.text("game"))
        if found is None:
            raise NotHereError("this dialogue is no longer there; begin another one.")
        return found

    def _side(self, side: Asked, whole: Asked) -> Side:
        if "source" in side:
            number = side.whole("source")
            listing: Listing = self.shelf.find(number, DIALOGUES)
            rows = listing.rows(side)
            name = side.text("policy", self.shelf.sources[number].name)
            return Side(name, number, listing, rows)
        name = side.text("policy")
        episodes = whole.whole("episodes", 20, 1, MOST_EPISODES)
        entry = whole.entry("env")
        dataset = self._played(name, entry, episodes, whole.whole("seed", 0))
        listing = Listing(dataset)
        title = f"{name} on {entry.row.name}"
        source = self.shelf.add(DIALOGUES, title, "", listing)
        return Side(name, source.number, listing, listing.rows(Asked({})))

    def _played(self, name: str, entry: RegistryEntry, episodes: int, seed: int) -> Dataset:
        run = self.shelf.runs().get(name)
        policy = str(run.folder) if run else name
        known = named_policies(make_task(entry, self.settings), "system", entry.view)
        if run is None and name not in known:
            raise unknown("policy", name, [*known, *self.shelf.runs()])
        return collect(
            entry,
            policy,
            episodes,
            seed,
            env_kwargs=self.settings,
            name=name,
            deterministic=True,
            num_envs=min(episodes, 64),
            trust=self.shelf.trust,
        )

    def _against(self, name: str, entry: RegistryEntry, party: str) -> Any:
        """A registered speaker of the other party, the model of a run, or None for the default."""
        runs = self.shelf.runs()
        if name in runs:
            return runs[name].as_speaker()
        task = make_task(entry, {})
        other = other_party(task, party)
        known = task.speakers.get(other, {})
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
    talk: Talk | None = None,
    values: Values | None = None,
    games: Path | None = None,
) -> Viewer:
    """The viewer of some runs, data sets and results; see `Shelf` and `Viewer`.

    Raises:
        FileNotFoundError, ValueError: there is nothing at a path, or nothing that can be shown.
    """
    return Viewer(Shelf(paths, trust), Ratings(ratings), settings or {}, talk, values, games)
