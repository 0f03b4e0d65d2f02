"""The six settings of the benchmark: noise, masks and user."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from dialgym.errors import one_of


class Setting(NamedTuple):
    """What makes an environment of the benchmark.

    Attributes:
        error_rate: how often the best hypothesis is wrong.
        noise: statistics of the lists of hypotheses, or ``"single"`` for no lists.
        masks: whether rules restrict the summary acts.
        user: how the user behaves.
    """

    error_rate: float
    noise: str
    masks: bool
    user: str


SETTINGS: Mapping[int, Setting] = MappingProxyType(
    {
        1: Setting(0.0, "single", True, "standard"),
        2: Setting(0.0, "single", False, "standard"),
        3: Setting(0.15, "set1", True, "standard"),
        4: Setting(0.15, "set1", False, "standard"),
        5: Setting(0.15, "set1", True, "unfriendly"),
        6: Setting(0.30, "set3", True, "standard"),
    }
)


def setting(env: int) -> Setting:
    """A setting by its number.

    Raises:
        ValueError: it is not 1 to 6.
    """
    one_of("env", env, SETTINGS, "slot filling")
    return SETTINGS[env]
