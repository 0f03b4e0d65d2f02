"""The rules of visual dialogue."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from dialgym.errors import keywords_of, one_of, whole_number
from dialgym.io.objects import load
from dialgym.io.tables import fingerprint, locate
from dialgym.language import AnyText, Constraint, Utterance, WordTrie
from dialgym.language.text import CHARSET
from dialgym.simulators import Speaker
from dialgym.tasks.base import Facts, Features, Outcome, Task
from dialgym.tasks.batch import DialogueBatch
from dialgym.tasks.briefs import length_sentence, turns_sentence
from dialgym.tasks.hidden import reveal
from dialgym.tasks.visual_dialogue.answerer import make_answerer
from dialgym.tasks.visual_dialogue.exact import ExactGuesser
from dialgym.tasks.visual_dialogue.guessers import Held, make_guesser
from dialgym.tasks.visual_dialogue.pool import ROOM, make_pool
from dialgym.tasks.visual_dialogue.scoring import Scoring, ScoringOptions, is_hard
from dialgym.tasks.visual_dialogue.types import ANSWERER, QUESTIONER, STOP, VisualState
from dialgym.tasks.visual_dialogue.visdial import PATTERNS

POLICIES = f"{ROOM}.policies"
METRICS = ("percentile", "yes/no answers")


class VisualDialogue(Task):
    """Find a hidden image among many by asking about it.

    The `system` is the questioner, the `user` the answerer. An image of the pool is drawn; the
    answerer alone is told what is in it (in words, and by its features), then both hear its
    caption. The questioner asks, the answerer answers, and after each answer a *guesser* ranks all
    images of the pool by the dialogue. Its percentile rank of the true one, 1 where it is the
    first, is what the dialogue is about. The questioner is given no image; where the guesser has
    an idea of it, as the exact one has, that is the questioner's array of features.

    Built-in images are generated scenes of two to five toys. There the answerer is made of rules
    that understand a grammar of questions (see the task's README.md); to anything else it says
    ``I can't tell``. The guesser is exact by Bayes' rule.

    Rewards, after each answer, the same for both parties as they work together:

    - ``env_stops``: -`cost`, but 0 for the answer by which the `cutoff` is reached, which ends the
      dialogue (terminated, a success). After `rounds` answers it is over too.
    - ``agent_stops``: the change of the percentile rank, less `cost`. The questioner ends the
      dialogue by a question with ``<stop>`` in it, for which there is no reward.
    - ``10_stop``: the change of the percentile rank, less `cost`, for all `rounds`.

    With a `penalty`, an answer that is a yes or no costs `yes_no` beside, the last one included.
    It is a success where the `cutoff` is reached at the end. Any text is a legal question and a
    legal answer.

    Args:
        pool: the images: ``"scenes"`` or a mapping such as ``{"name": "scenes", "scenes": 100,
            "split": "test", "seed": 1, "vague": 0.1}``; ``"visdial:PATH"``; or a `Pool`.
        guesser: ``"exact"``, ``"words"`` (VisDial), ``"learned:PATH"``, ``"remote:URL"``,
            ``"cached:PATH"`` (what people said alone), or an object with
            ``percentiles(dialogues)``.
        answerer: None for the pool's own; ``"rules"``, ``"retrieval"``, ``"remote:URL"``, or an
            object with ``reply(task, state, rng)``.
        mode: who ends a dialogue: ``"env_stops"``, ``"agent_stops"`` or ``"10_stop"``.
        penalty: which answers are a yes or no: ``"none"``; ``"hard"``, just ``yes`` or ``no``;
            ``"soft"``, anything with these letters in it (``snow`` too); ``"conservative"``,
            anything with one of 17 such words in it, ``can't`` and ``tell`` among them.
        reward: ``"standard"``, or ``"ilql"``: in ``env_stops`` the last answer costs nothing even
            if it is the last of `rounds`, and there are penalties in this mode alone.
        cutoff: ``(goal, fraction)``: how much of the way from the percentile rank by the caption
            to the goal is enough. None for (1, 1), found, with the exact guesser, else ILQL's
            (1, 0.5), half way.
        cost: of an answer; None for 1 in ``env_stops``, else 0.
        yes_no: what a yes or no costs.
        rounds: most questions.
        constraint: what action masks allow: None for any text, or ``"questions"``, those that
            scripted questioners choose from.
        longest: most characters of a question.
        most_words: most words of a question, where token views read words.

    Options of reset: ``image``, a number from 0 to ``len(task.pool) - 1``.

    Versions:
        v0: the first, of dialgym 0.1.

    Raises:
        ValueError: a setting is not one of the above, or does not fit the others.

    Source: the game of Das et al. (2017), "Learning Cooperative Visual Dialog Agents with Deep
    Reinforcement Learning"; modes, penalties and cutoff as in ILQL (Snell et al., 2022).
    """

    name = "VisualDialogue"
    how_to_play = {  # noqa: RUF012
        "system": "Ask about a picture that you do not see, until it is told from all others: "
        "what colour is the ball",
        "user": "Answer questions about the picture that you alone are told about.",
    }
    verbs = {"system": "ask(question)", "user": "answer(text)"}  # noqa: RUF012
    options = ("image",)
    speakers = {  # noqa: RUF012
        ANSWERER: {"answerer": f"{POLICIES}:SceneAnswerer"},
        QUESTIONER: {
            "greedy": f"{POLICIES}:GreedySceneQuestioner",
            "greedy-open": f"{POLICIES}:greedy_open",
            "greedy-yes-no": f"{POLICIES}:greedy_yes_no",
            "greedy-find": f"{POLICIES}:greedy_find",
            "human-like": f"{POLICIES}:HumanLikeSceneQuestioner",
            "people": f"{POLICIES}:people",
            "random": f"{POLICIES}:RandomSceneQuestioner",
            "random-mixture": f"{POLICIES}:SceneMixture",
            "retrieval": f"{ROOM}.retrieval:RetrievalQuestioner",
        },
    }
    generators = {  # noqa: RUF012
        "graded": f"{POLICIES}:graded",
        "branching": f"{POLICIES}:branching",
        "halves": f"{POLICIES}:halves",
        "corpus": f"{ROOM}.retrieval:VisDialCorpus",
    }
    hidden_fields = {QUESTIONER: ("image", "private", "percentiles")}  # noqa: RUF012

    @keywords_of(Scoring.of)
    def __init__(
        self,
        pool: Any = "scenes",
        guesser: Any = "exact",
        answerer: Any = None,
        rounds: int = 10,
        constraint: str | None = None,
        longest: int = 64,
        most_words: int = 12,
        **scoring: Unpack[ScoringOptions],
    ) -> None:
        one_of("constraint", constraint, (None, "questions"), self.name)
        self.rounds = whole_number("rounds", rounds, self.name)
        self.longest = whole_number("longest", longest, self.name)
        self.most_words = whole_number("most_words", most_words, self.name)
        self.pool = make_pool(pool)
        self.guesser = make_guesser(guesser, self.pool)
        self.answerer = make_answerer(answerer, self.pool)
        half_way = not isinstance(self.guesser, ExactGuesser)
        self.scoring = Scoring.of(self.rounds, half_way, **scoring)
        self.tokenizer = self.pool.tokenizer  # type: ignore[misc]
        self._constraint = self._questions() if constraint else AnyText()
        self.facts = self._facts()

    def _questions(self) -> Constraint:
        stop = [STOP] if self.scoring.mode == "agent_stops" else []
        if self.pool.questions:
            return WordTrie([*self.pool.questions, *stop])
        name = type(self.pool).__name__
        raise ValueError(f"constraint of {self.name}: {name} has no questions. Leave it out.")

    def _facts(self) -> Facts:
        pool, rounds, stops = self.pool, self.rounds, self.scoring.mode == "agent_stops"
        own, other = {QUESTIONER: rounds, ANSWERER: 1 + rounds}, pool.most_lines
        words = pool.most_words and {QUESTIONER: self.most_words, ANSWERER: pool.most_words}
        form = Features((pool.features.shape[1],), -1.0)
        given = [ANSWERER, QUESTIONER] if hasattr(self.guesser, "imagine") else [ANSWERER]
        return Facts(
            turn_limit=rounds,
            longest={QUESTIONER: self.longest, ANSWERER: pool.longest},
            heard={QUESTIONER: own, ANSWERER: own | {ANSWERER: 1 + rounds + other}},
            returns=dict.fromkeys(self.parties, self.scoring.returns),
            charset=CHARSET,
            hidden={QUESTIONER: ("the image",)},
            may_end=(QUESTIONER, ANSWERER) if stops else (ANSWERER,),
            words=dict.fromkeys(self.parties, words) if words else None,
            components=dict.fromkeys(self.parties, self.scoring.names),
            features=dict.fromkeys(given, form),
            metrics=METRICS,
        )

    @classmethod
    def surroundings(cls, settings: Mapping[str, Any]) -> Any:
        """The state of the data that the pool names."""
        pool = settings.get("pool")
        named = isinstance(pool, str) and pool.partition(":")[2]
        data = pool.get("data") if isinstance(pool, Mapping) else named
        return fingerprint(locate(data, cls.name, patterns=PATTERNS)) if data else None

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> VisualState:
        state = self.begin(rng, options)
        self.rank([state])
        return state

    def secrets(self) -> Sequence[Mapping[str, Any]]:
        """The images of the pool."""
        return [{"image": image} for image in range(len(self.pool))]

    def begin(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> VisualState:
        """A fresh state that `rank` is still to be asked about."""
        image, count = self.check_options(options).get("image"), len(self.pool)
        if image is None:
            image = int(rng.integers(count))
        image = whole_number("option 'image'", image, self.name, 0, count - 1)
        caption = self.pool.captions[image][: self.pool.longest]
        return VisualState(image, self._told(image), [Utterance(ANSWERER, caption)], [])

    def _told(self, image: int) -> tuple[Utterance, ...]:
        """Private utterances about an image for the answerer."""
        told = self.pool.description(image)
        return tuple(Utterance(ANSWERER, text, private=True) for text in told)

    def held(self, state: VisualState) -> Held:
        """The dialogue as guessers see it."""
        return Held(state.lines[0].text, state.history, state.image)

    def rank(self, states: Sequence[VisualState]) -> None:
        """Ask the guesser once for all of the states, and note what it says in each."""
        found = self.guesser.percentiles([self.held(state) for state in states])
        for state, percentile in zip(states, np.asarray(found, np.float64).tolist()):
            state.percentiles.append(percentile)

    def speaker(self, state: VisualState) -> str:
        return QUESTIONER if state.asked is None else ANSWERER

    def transcript(self, state: VisualState, party: str) -> Sequence[Utterance]:
        return state.lines if party == QUESTIONER else [*state.private, *state.lines]

    def conditions(self, party: str) -> Sequence[str]:
        """Those on turns, the pool of pictures, the end and what answers cost."""
        own = [turns_sentence(self, party), *length_sentence(self, party), self.pool.about]
        if party == ANSWERER:
            return own
        return [*own, f"There are {len(self.pool):,} pictures.", *self.scoring.sentences()]

    def scenario(self, state: VisualState, party: str) -> str:
        return self.pool.told(state.image) if party == ANSWERER else ""

    def speak(self, state: VisualState, text: str, rng: np.random.Generator) -> Outcome:
        if state.asked is None:
            return self.ask(state, text)
        self.take(state, text)
        self.rank([state])
        return self.conclude(state)

    def ask(self, state: VisualState, text: str) -> Outcome:
        """Let the questioner ask, or stop."""
        state.lines.append(Utterance(QUESTIONER, text))
        if self.scoring.mode == "agent_stops" and STOP in text:
            state.over = True
            return Outcome.of(_NOTHING, True, False, self.scoring.cutoff.reached(state.percentiles))
        state.asked = text
        return Outcome.of(_NOTHING)

    def take(self, state: VisualState, text: str) -> None:
        """Take down what the answerer says; `rank` and `conclude` follow."""
        state.lines.append(Utterance(ANSWERER, text))
        state.history += ((str(state.asked), text),)
        state.asked = None

    def conclude(self, state: VisualState) -> Outcome:
        """Outcome of the answer that was taken down last."""
        reached = self.scoring.cutoff.reached(state.percentiles)
        stops = reached and self.scoring.mode == "env_stops"
        state.over = stops or len(state.history) == self.rounds
        answer = state.history[-1][1]
        parts = self.scoring.components(answer, state.percentiles, state.over)
        success = reached if state.over else None
        return Outcome.of(dict.fromkeys(self.parties, parts), state.over, False, success)

    def static_constraint(self, party: str) -> Constraint | None:
        return self._constraint if party == QUESTIONER else AnyText()

    def features(self, state: VisualState, party: str) -> np.ndarray | None:
        """The answerer is given those of the image, the questioner what the guesser imagines."""
        if party == ANSWERER:
            return self.pool.features[state.image].copy()
        imagine = getattr(self.guesser, "imagine", None)
        return imagine([self.held(state)])[0] if imagine else None

    def metrics(self, state: VisualState) -> Mapping[str, float]:
        """The percentile rank at the end, and how many answers were just yes or no."""
        said = [is_hard(answer) for _, answer in state.history]
        return dict(zip(METRICS, (state.percentiles[-1], sum(said) / len(said) if said else -1.0)))

    def hypotheses(self, state: VisualState) -> int:
        """See `dialgym.tasks.posterior.ExactPosterior`."""
        return len(self.pool)

    def posterior(self, state: VisualState) -> np.ndarray:
        """(n,) how likely each scene is, given what the questioner has seen.

        Where the environment stops and the guesser is the exact one, that is more than the guesser
        knows: that the dialogue has not been over before rules out what would have ended it.
        Raises what `by_answers` raises.
        """
        posterior = self.by_answers(state)
        if self.exact is not self.guesser or self.scoring.mode != "env_stops":
            return posterior
        left = posterior * self._not_ended_by(state)
        total = left.sum()
        return left / total if total > 0 else posterior

    def by_answers(self, state: VisualState) -> np.ndarray:
        """(n,) how likely each scene is by the caption and the answers alone.

        Raises:
            ValueError: the images are none of generated scenes.
        """
        return self.exact.posterior(state.lines[0].text, state.history).copy()

    @cached_property
    def exact(self) -> ExactGuesser:
        """The exact guesser, whoever else may be asked for the reward."""
        return self.guesser if isinstance(self.guesser, ExactGuesser) else ExactGuesser(self.pool)

    def _not_ended_by(self, state: VisualState) -> np.ndarray:
        """(n,) bool: the scenes of which the dialogue would have gone just as long."""
        # the ranks are hidden from the questioner; that they did not end the dialogue is not
        caption, history, ranks = state.lines[0].text, state.history, reveal(state.percentiles)
        first = self.exact.percentiles_of_all(caption, ())
        fits = np.ones(len(self.pool), bool)
        for turn in range(1, len(history) + 1):
            last = self.exact.percentiles_of_all(caption, history[:turn])
            reached = self.scoring.cutoff.far_enough(first, last)
            ended = self.scoring.cutoff.reached(ranks[: turn + 1])
            fits &= reached == ended
        return fits

    def truth(self, state: VisualState) -> int:
        """The place of the image in the pool."""
        return state.image

    def suppose(self, state: VisualState, place: int) -> VisualState:
        """The same dialogue about another image, which has had ranks of its own."""
        other = state.copy()
        other.image, other.private, other.percentiles = place, self._told(place), []
        turns = [replace(other, history=state.history[:k]) for k in range(len(state.percentiles))]
        found = self.guesser.percentiles([self.held(turn) for turn in turns])
        other.percentiles = np.asarray(found, np.float64).tolist()
        return other

    def batch(self, size: int, learner: str, simulator: Speaker) -> DialogueBatch | None:
        if learner != QUESTIONER:
            return None
        form = load(f"{ROOM}.batch:VisualBatch")
        batch: DialogueBatch = form(self, size, simulator)
        return batch

    def picture(self, state: VisualState) -> np.ndarray | None:
        """For spectators: the scene and the ranks, of which the questioner is not told."""
        from dialgym.tasks.visual_dialogue.sheet import draw_dialogue

        scene = self.pool.picture(state.image)
        return None if scene is None else draw_dialogue(scene, state.lines, state.percentiles)

    def words(self) -> Sequence[str]:
        asked = [word for question in self.pool.questions for word in question.split()]
        return tuple(dict.fromkeys([*self.pool.words, *asked, STOP]))


_NOTHING: Mapping[str, dict[str, float]] = {QUESTIONER: {}, ANSWERER: {}}
