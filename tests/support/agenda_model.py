"""A language model behind a service that talks as the agenda user does, in words of its own, and
may have one fault in some of its dialogues."""

import re
import threading
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.language.acts import NULL, Act, SlotValue
from dialgym.registry import entry_of, make_task
from dialgym.rollouts import episode_seed
from dialgym.simulators.model_prompt import PromptForm
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, NONE

ENV = "SlotFilling-utterance-v0"
SYSTEM, USER = "system", "user"
WORDS = (
    ("I am looking for", ("Could you find me", "I was hoping for")),
    ("I want", ("I'd love", "I am after")),
    ("I would like", ("Get me", "I fancy")),
    ("Goodbye", ("Bye bye", "Well, goodbye")),
    ("Thank you", ("Thanks a lot",)),
    ("What is", ("Tell me", "Could I have")),
    ("Yes", ("Yeah", "Yep")),
)
OPENINGS = ("", "", "Well, ", "So, ", "Hm, ", "Oh, ")
LATER = ("Okay.", "Great.", "Thanks.", "Fine.")


def paraphrase(text: str, rng: np.random.Generator) -> str:
    """The same in other words."""
    for old, new in WORDS:
        text = re.sub(rf"\b{old}\b", new[int(rng.integers(len(new)))], text, count=1)
    return OPENINGS[int(rng.integers(len(OPENINGS)))] + text


@dataclass
class Talk:
    """A dialogue so far.

    Attributes:
        goal: as the brief has it.
        fault: that it has; "" for none.
        rng, user: generator and agenda.
        open: slots that it needs and has not been told.
        offered: a row was named, or that there is none.
        done: turns since it would have said goodbye with all that it needs.
        heard, act, text: last act of the system, the agenda's answer, and that in words.
        said, shown: what it has said, and where that has shown its fault.
    """

    goal: Any
    fault: str
    rng: np.random.Generator
    user: Any
    open: set[str]
    offered: bool = False
    done: int = 0
    heard: Act = NULL
    act: Act = NULL
    text: str = ""
    said: list[str] = field(default_factory=list)
    shown: list[bool] = field(default_factory=list)

    @property
    def number(self) -> int:
        """Of the turn, from 0."""
        return len(self.said)


@dataclass
class AgendaModel:
    """Answers requests for a chat of the user of slot filling, in English.

    A request tells it the brief and the system's words alone; what the agenda said so far follows
    from these, and is kept.

    Attributes:
        episodes, seed: whose goals it knows.
        fault: a name of `FAULTS`; "" for none.
        rate: share of goals in which it has the fault where there is an occasion.
        salt: of its own draws.
        error_rate: of the channel by which the system hears it.
        planted: dialogues in which it has shown the fault.
    """

    episodes: int
    seed: int = 0
    fault: str = ""
    rate: float = 0.0
    salt: int = 0
    planted: int = 0
    error_rate: float = 0.0
    goals: dict = field(default_factory=dict)
    talks: dict = field(default_factory=dict)

    def __post_init__(self):
        self.lock = threading.Lock()
        self.settings = {"language": "english", "error_rate": self.error_rate}
        self.task = make_task(entry_of(ENV), self.settings)
        self.understand = cache(lambda text: self.task.language.understand(text, SYSTEM) or NULL)
        for episode in range(self.episodes):
            rng = np_random(episode_seed(self.seed, episode))[0]
            state = self.task.initial(rng)
            brief = PromptForm().first_message(self.task, state, USER)
            self.goals[brief] = state.goal

    def __call__(self, body) -> str:
        brief, *messages = (message["content"] for message in body["messages"])
        heard = messages[::2]
        with self.lock:
            for number in range(len(heard)):
                self._answer(brief, tuple(heard[: number + 1]))
            talk = self.talks[brief, *heard]
            self.planted += talk.shown == [*talk.shown[:-1], True] and not any(talk.shown[:-1])
            return talk.said[-1]

    def _answer(self, brief: str, heard: tuple[str, ...]) -> None:
        """Work out what it answers to the last of the system's words, where it has not yet."""
        if (brief, *heard) in self.talks:
            return
        before = self.talks.get((brief, *heard[:-1])) or self._begin(brief)
        talk = deepcopy(before)
        act = self.understand(heard[-1])
        talk.open -= {item.slot for item in act.items if item.value not in (None, NONE)}
        talk.offered = talk.offered or act.value(NAME) is not None
        self.task.simulated.hear(talk.user, act, talk.rng)
        answer = self.task.simulated.answer(talk.user, talk.rng)
        talk.done += answer.type == "bye" and not talk.open
        text = paraphrase(self.task.language.say(answer, USER, talk.rng), talk.rng)
        talk.heard, talk.act, talk.text = act, answer, text
        text, shown = FAULTS[talk.fault](self.task, talk) if talk.fault else (text, False)
        talk.said.append(text)
        talk.shown.append(shown)
        self.talks[brief, *heard] = talk

    def _begin(self, brief: str) -> "Talk":
        digest = int(sha256(brief.encode()).hexdigest()[:12], 16)
        faulty = np.random.default_rng([self.salt, digest, 1]).random() < self.rate
        rng, goal = np.random.default_rng([self.salt, digest]), self.goals[brief]
        fault = self.fault if faulty else ""
        user = self.task.simulated.begin(forgetting(goal, fault), rng)
        return Talk(goal, fault, rng, user, {NAME, *goal.requests})


def forgetting(goal, fault):
    """The goal that the agenda follows, in which something may be missing."""
    wishes = dict(goal.constraints)
    if fault == "forgotten wish":
        wishes.pop(next((slot for slot, value in wishes.items() if value != DONTCARE), None), None)
    requests = (NAME,) if fault == "forgotten request" else goal.requests
    return goal._replace(constraints=wishes, requests=requests)


# Faults: of a turn what is said in it, and whether that shows the fault

Fault = Callable[..., tuple[str, bool]]


def at(number: int, say: Callable[[Talk], str]) -> Fault:
    """A fault in one turn, whatever is said in the others."""

    def speak(task, talk):
        return (say(talk), True) if talk.number == number else (talk.text, False)

    return speak


def other_value(task, slot, talk):
    """A value of a slot that the goal has not."""
    wrong = [
        v for v in task.domain.ontology.informable[slot] if v != talk.goal.constraints.get(slot)
    ]
    return wrong[int(talk.rng.integers(len(wrong)))]


def invented(task, talk):
    wishes = [i for i in talk.act.items if i.slot in talk.goal.constraints and i.value is not None]
    if talk.act.type != "inform" or talk.offered or not wishes:
        return talk.text, False
    told = SlotValue(wishes[0].slot, other_value(task, wishes[0].slot, talk))
    items = tuple(told if item == wishes[0] else item for item in talk.act.items)
    return task.language.say(Act("inform", items), USER, talk.rng), True


def changed(task, talk):
    if not talk.offered or any(talk.shown) or talk.act.type == "bye":
        return talk.text, False
    slot = next(iter(talk.goal.constraints))
    told = Act("inform", (SlotValue(slot, other_value(task, slot, talk)),))
    return f"Actually, {task.language.say(told, USER, talk.rng)}", True


def at_once(task, talk):
    asked = [slot for slot in talk.goal.requests if slot != NAME]
    if talk.number or not asked:
        return talk.text, False
    wishes = Act("inform", tuple(SlotValue(*pair) for pair in talk.goal.constraints.items()))
    told = task.language.say(wishes, USER, talk.rng).rstrip(".")
    return f"{told}, and the {task.language.phrases.label(asked[0])}, please.", True


def forgets(task, talk):
    """By its agenda it never asks; it shows that by its goodbye."""
    missing = talk.open & {*talk.goal.requests} - {NAME}
    return talk.text, talk.act.type == "bye" and talk.heard.type != "bye" and bool(missing)


def forgets_wish(task, talk):
    """By its agenda it has no such wish; it shows that where it is asked."""
    wishes = {slot for slot, value in talk.goal.constraints.items() if value != DONTCARE}
    asked = talk.heard.items[0].slot if talk.heard.type == "request" and talk.heard.items else ""
    carefree = SlotValue("", DONTCARE) in talk.act.items and asked in wishes
    told = any(item.value == DONTCARE and item.slot in wishes for item in talk.act.items)
    return talk.text, not talk.offered and (carefree or told)


def ends_early(task, talk):
    ends = talk.number == 2 and talk.open and talk.heard.type not in ("bye", "reqmore")
    return ("Goodbye.", True) if ends else (talk.text, False)


def ends_late(task, talk):
    if not talk.done:
        return talk.text, False
    return LATER[talk.number % len(LATER)], talk.done == 3


def accepts(task, talk):
    if talk.heard.type not in ("confirm", "inform") or talk.heard.value(NAME) == NONE:
        return talk.text, False
    against = [
        item
        for item in talk.heard.items
        if talk.goal.constraints.get(item.slot, item.value) not in (item.value, DONTCARE)
        and talk.user.wanted(item.slot) == talk.goal.constraints[item.slot]  # it is as it was
        and item.value not in (None, DONTCARE)
    ]
    return ("Yes, that is right.", True) if against else (talk.text, False)


def ends_politely(task, talk):
    ends = talk.heard.type == "reqmore" and talk.open
    return ("No, that is all, goodbye.", True) if ends else (talk.text, False)


def restarts(task, talk):
    opening = talk.said[0] if talk.said else ""
    fits = len(opening.split()) > 3 and talk.heard.type not in ("repeat", "null")
    again = talk.number >= 2 and fits and talk.said[-1] != opening
    return (opening, True) if again else (talk.text, False)


def repeats(task, talk):
    return (talk.said[1], talk.number == 3) if 1 < talk.number < 4 else (talk.text, False)


THOUGHTS = (
    "Thought: I should tell what I look for. {}",
    "My goal is to find a restaurant, so: {}",
    "The system asked me something. I need to answer as the user. {}",
    "### Plan\n{}",
)
HELP = (
    "How may I help you?",
    "What kind of food would you like?",
    "I'd recommend something in the north. Is there anything else I can help with?",
    "System: {}",
)
FAULTS: Mapping[str, Fault] = {
    "invented value": invented,
    "changed goal": changed,
    "all told at once": at_once,
    "forgotten wish": forgets_wish,
    "forgotten request": forgets,
    "early end": ends_early,
    "late end": ends_late,
    "accepts the wrong": accepts,
    "ends when asked for more": ends_politely,
    "restart": restarts,
    "role inversion": at(1, lambda t: HELP[int(t.rng.integers(len(HELP)))].format(t.text)),
    "scratchpad": at(1, lambda t: THOUGHTS[int(t.rng.integers(len(THOUGHTS)))].format(t.text)),
    "repetition": repeats,
    "foreign characters": at(1, lambda t: f"{t.text} 谢谢"),
    "not understood": at(1, lambda t: "Blorp flumph quux."),
    "silence": at(1, lambda t: ""),
}
