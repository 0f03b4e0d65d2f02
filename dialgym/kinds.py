"""Table of the kinds of views: token, utterance and act.

Whatever depends on the kind of a view reads this table. A fourth kind is a row here, the classes
that the row names, and a line of the documentation.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ViewKind:
    """A kind of view.

    Attributes:
        name: as in `list_ids(view=...)` and the registry.
        suffix: what it adds to the name in an id.
        single, vector, two_party: its classes, ``module:Class``.
        actions: what one action is, in the plural; learners are registered for it.
        options: those of `dialgym.views.options` that not every kind has.
        numeric: its observations and actions are arrays and numbers, so it can be sharded over
            processes, be a Stable-Baselines3 `VecEnv`, and be played by a policy with `predict`.
        of_acts: its policies choose dialogue acts, and only parties with acts have it.
    """

    name: str
    suffix: str
    single: str
    vector: str
    two_party: str
    actions: str
    options: tuple[str, ...] = ()
    numeric: bool = True
    of_acts: bool = False


KINDS: Mapping[str, ViewKind] = {
    kind.name: kind
    for kind in (
        ViewKind(
            name="token",
            suffix="",
            single="dialgym.views.token_env:TokenEnv",
            vector="dialgym.views.token_vector_env:TokenVectorEnv",
            two_party="dialgym.views.two_party:TokenTwoPartyEnv",
            actions="tokens",
            options=("action_masks", "masked_observations", "features"),
        ),
        ViewKind(
            name="utterance",
            suffix="-utterance",
            single="dialgym.views.utterance_env:UtteranceEnv",
            vector="dialgym.views.utterance_vector_env:UtteranceVectorEnv",
            two_party="dialgym.views.two_party:UtteranceTwoPartyEnv",
            actions="utterances",
            numeric=False,
        ),
        ViewKind(
            name="act",
            suffix="-act",
            single="dialgym.views.act_env:ActEnv",
            vector="dialgym.views.act_vector_env:ActVectorEnv",
            two_party="dialgym.views.two_party:ActTwoPartyEnv",
            actions="acts",
            options=("action_masks", "masked_observations"),
            of_acts=True,
        ),
    )
}
"""By name, in the order in which they are listed."""


def numeric_kinds() -> str:
    """The names of the kinds whose observations and actions are numbers: ``token and act``."""
    return " and ".join(kind.name for kind in KINDS.values() if kind.numeric)
