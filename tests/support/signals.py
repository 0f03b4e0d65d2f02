"""A game for two who learn: one is told a letter and passes it on, the other says it after it."""

from dataclasses import dataclass, field

from dialgym.language import Letters, Utterance
from dialgym.tasks import Facts, Outcome, Task

LETTERS, ROUNDS, EFFORT = "abc", 2, 0.125


@dataclass
class Talk:
    """The user's secret, and the lines so far."""

    letter: str
    lines: list[Utterance] = field(default_factory=list)

    def copy(self) -> "Talk":
        return Talk(self.letter, self.lines.copy())


class Honest:
    """Says the letter, or the one that was said."""

    def reply(self, task, state, rng):
        return state.letter if task.speaker(state) == "user" else state.lines[-1].text


class Signals(Task):
    """Twice the user says a letter, and the system one: both are paid if the first is what the
    user was told, and if the second is the first. The user pays a little of its own for an ``a``.
    """

    name = "Signals"
    options = ("letter",)
    speakers = {p: {"honest": Honest, "random": Honest} for p in ("system", "user")}
    facts = Facts(
        turn_limit=ROUNDS,
        longest={"system": 1, "user": 1},
        heard={
            "system": {"system": ROUNDS, "user": ROUNDS},
            "user": {"system": ROUNDS, "user": ROUNDS + 1},
        },
        returns={"system": (0, ROUNDS), "user": (-EFFORT * ROUNDS, ROUNDS)},
        charset=LETTERS,
        hidden={"system": ("letter",)},
        components={"system": ("told", "heard"), "user": ("told", "heard", "effort")},
    )

    def initial(self, rng, options=None):
        letter = self.check_options(options).get("letter")
        return Talk(letter or LETTERS[int(rng.integers(len(LETTERS)))])

    def speaker(self, state):
        return ("user", "system")[len(state.lines) % 2]

    def transcript(self, state, party):
        own = [Utterance("user", state.letter, private=True)] if party == "user" else []
        return own + state.lines

    def speak(self, state, text, rng):
        party = self.speaker(state)
        state.lines.append(Utterance(party, text))
        if party == "user":
            return Outcome.of({"system": {}, "user": {"effort": -EFFORT if text == "a" else 0.0}})
        said = state.lines[-2].text
        paid = {"told": 0.5 * (said == state.letter), "heard": 0.5 * (text == said)}
        over = len(state.lines) == 2 * ROUNDS
        return Outcome.of({"system": paid, "user": paid}, over, False, text == state.letter)

    def static_constraint(self, party):
        return Letters(LETTERS, 1)
