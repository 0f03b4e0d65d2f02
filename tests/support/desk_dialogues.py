"""Dialogues of a service desk by rules, and goals to play them with."""

import numpy as np

from dialgym.tasks.service_desk import ServiceDesk
from dialgym.tasks.service_desk.desk_goals import goal_of

SHOP, PHONE = ServiceDesk(), ServiceDesk("phone")
ENGLISH = {
    "shop": ServiceDesk(language="english"),
    "phone": ServiceDesk("phone", language="english"),
}
RNG = np.random.default_rng(0)


def serve(task, desk, user="agenda", goal=0, split="train"):
    """A dialogue by rules: its state and its return."""
    desk = task.speaker_named("system", desk) if isinstance(desk, str) else desk
    user = task.speaker_named("user", user)
    state, total = task.initial(RNG, {"goal": goal, "split": split}), 0.0
    while not state.over:
        speaker = user if state.waiting else desk
        total += task.speak(state, speaker.reply(task, state, RNG), RNG).rewards["system"]
    return state, total


def first_goal(fits, domain="shop"):
    return next(number for number in range(500) if fits(goal_of(domain, "train", number)))


def allowed_change(goal):
    """Goals of one change that is allowed, and that the user sticks to."""
    request = goal.requests[0]
    plain = not (request.forbidden or request.changes or goal.impostor or goal.slips)
    return len(goal.requests) == 1 and request.kind < 3 and request.way == 0 and plain
