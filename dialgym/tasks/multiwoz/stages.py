"""Your own stages of the pipeline: NLU, tracker and NLG.

A dialogue goes through understanding (NLU), tracking, a policy, and wording (NLG). The policy is
whoever plays a party: the learner, ``simulator=``, or a speaker by name. The others are given to
the task as objects with the methods of `STAGES`, or as ``module:Class`` of one that is made of the
world (`World`) or of nothing.
"""

from collections.abc import Mapping
from typing import Any

from dialgym.io.objects import part_of
from dialgym.tasks.multiwoz.data import World

STAGES: Mapping[str, tuple[str, ...]] = {
    "nlu": ("understand(text, party)",),
    "tracker": ("update(belief, acts)", "heard(belief, acts)"),
    "nlg": ("say(acts, party, rng)",),
}
"""By name: what an object must do. Trackers change the belief; the others return acts and text."""


def find_stage(stage: str, given: Any, world: World) -> Any:
    """The object of a stage, or None where none is given.

    Raises:
        ValueError: what is given, or what it names, has not the stage's methods.
    """
    return given if given is None else part_of(given, f"{stage} of MultiWOZ", STAGES[stage], world)
