"""Your own users, goals, rewards, masks and tracker, as mappings or YAML files that hold them."""

from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from dialgym.errors import check_flags, finite_number, one_of, share, unknown, whole_number
from dialgym.io.files import read_yaml
from dialgym.io.objects import part_of
from dialgym.tasks.slot_filling.domain.ontology import Ontology
from dialgym.tasks.slot_filling.languages.notation import MOST_VALUES
from dialgym.tasks.slot_filling.rewards import Rewards
from dialgym.tasks.slot_filling.settings import Masks, SystemSettings
from dialgym.tasks.slot_filling.summary import Thresholds
from dialgym.tasks.slot_filling.tracker import TRACKERS, BeliefTracker
from dialgym.tasks.slot_filling.user import USERS, SlotUserBehaviour

WHERE = "SlotFilling"
YAML = (".yml", ".yaml")
Given = Mapping[str, Any] | str | PathLike[str] | None
"""Form of a setting: a mapping, the path of a YAML file that holds one, or None."""


class GoalSettings(NamedTuple):
    """Settings of drawing goals; see `GoalGenerator`.

    Attributes:
        constraints: slots that the user constrains.
        requests: most slots that it asks for beside the name.
        matches: least and most rows that meet the constraints.
        split: that the constraints are of, ``train``, ``validation`` or ``test``; None for all.
    """

    constraints: int = 3
    requests: int = 2
    matches: tuple[int, int] = (2, 3)
    split: str | None = None


def behaviour_of(user: Given) -> SlotUserBehaviour:
    """The user of a name, or of a mapping from choices to probabilities.

    A probability is a number, or the two that it is drawn between for each dialogue. ``like`` names
    the user that has the others, ``patience`` is a number of repeated acts, or two.

    Raises:
        ValueError: a name is unknown, or a number is none of these.
    """
    if isinstance(user, str) and not user.endswith(YAML):
        one_of("user", user, USERS, WHERE)
        return SlotUserBehaviour(dict(USERS[user]))
    given = dict(mapping("user", user, "{like: unfriendly, greet: 0.5, patience: [2, 4]}"))
    like, patience = given.pop("like", "standard"), given.pop("patience", (4, 5))
    one_of("like of user", like, USERS, WHERE)
    ranges = dict(USERS[like])
    for name, value in given.items():
        if name not in ranges:
            raise unknown("choice", name, (*ranges, "like", "patience"), f"user of {WHERE}")
        ranges[name] = _range(f"user of {WHERE}: {name}", value)
    least, most = _pair(patience)
    where = f"user of {WHERE}"
    least = whole_number("patience", least, where)
    return SlotUserBehaviour(ranges, (least, whole_number("patience", most, where, least)))


def goals_of(goals: Given) -> GoalSettings:
    """Read how goals are drawn, from a mapping with any of the fields of `GoalSettings`.

    Raises:
        ValueError: another key, or a number that is none of these.
    """
    given = mapping("goals", goals, "{constraints: 3, requests: 2, matches: [2, 3]}")
    _check_keys("goals", given, GoalSettings._fields)
    where, default = f"goals of {WHERE}", GoalSettings()
    least, most = _pair(given.get("matches", default.matches))
    least = whole_number("matches", least, where)
    return GoalSettings(
        whole_number("constraints", given.get("constraints", default.constraints), where),
        whole_number("requests", given.get("requests", default.requests), where, 0),
        (least, whole_number("matches", most, where, least)),
        given.get("split"),
    )


def rewards_of(rewards: Given) -> Rewards:
    """The rewards of a mapping with any of `turn`, `closing`, `success`, `failure`.

    Raises:
        ValueError: another key, or what is no finite number.
    """
    given = mapping("rewards", rewards, "{turn: -1, success: 20}")
    _check_keys("rewards", given, [field.name for field in fields(Rewards)])
    found = {name: finite_number(f"{name} of rewards", value) for name, value in given.items()}
    return Rewards(**found)


def system_of(given: Mapping[str, Any], language: str) -> SystemSettings:
    """Settings of the system's side by name; masks and tracker are checked where they are made.

    Raises:
        ValueError: a number or flag is none, the language has no words for ``confreq``, or
            ``venue_count`` has no ``confreq`` to tell it.
    """
    check_flags(SystemSettings, given, WHERE)
    found = SystemSettings(**given)
    whole_number("inform_accepted", found.inform_accepted, WHERE)
    whole_number("inform_slots", found.inform_slots, WHERE, most=MOST_VALUES - 1)
    if found.venue_count and not found.confreq:
        raise ValueError(
            f"venue_count of {WHERE}: expected confreq=True beside it, whose acts tell the count; "
            "got confreq=False. Give both, or neither."
        )
    if found.confreq and language == "words":
        raise ValueError(
            f"confreq of {WHERE}: language='words' has two words for a summary act, too few for "
            "confreq food area. Take another language."
        )
    return found


def masks_of(masks: Given | bool, default: bool) -> Masks:
    """The masks of True or False for all, or of a mapping with any of `inform`, `request`, `bye`.

    `default` is for those that are left out.

    Raises:
        ValueError: another key, or what is neither True nor False.
    """
    if isinstance(masks, bool):
        return Masks(masks, masks, masks)
    given = mapping("masks", masks, "{inform: true, request: false, bye: true}, True, False")
    _check_keys("masks", given, Masks._fields)
    for name, value in given.items():
        one_of(name, value, (True, False), f"masks of {WHERE}")
    return Masks(**{name: bool(given.get(name, default)) for name in Masks._fields})


def tracker_of(tracker: Any, ontology: Ontology, fidelity: str) -> tuple[BeliefTracker, Thresholds]:
    """A tracker and its thresholds: a name of `TRACKERS`, your own, or a mapping with `tracker`.

    No YAML file: it could name a class to import, which files may only where a caller has.

    Raises:
        ValueError: another name or threshold, or an object that is no `BeliefTracker`.
    """
    given = dict(tracker) if isinstance(tracker, Mapping) else {"tracker": tracker}
    chosen = given.pop("tracker", "focus")
    _check_keys("tracker", given, Thresholds._fields)
    limits = Thresholds(**{name: share(f"{name} of tracker", p) for name, p in given.items()})
    if isinstance(chosen, str) and chosen in TRACKERS:
        return TRACKERS[chosen](ontology, fidelity), limits
    if isinstance(chosen, str) and ":" not in chosen:
        raise unknown("tracker", chosen, (*TRACKERS, "module:Class"), WHERE)
    methods = ("begin()", "update(belief, system, heard)")
    return part_of(chosen, f"tracker of {WHERE}", methods, ontology), limits


def mapping(name: str, given: Given, example: str) -> Mapping[str, Any]:
    """The mapping that a setting is, or that its file holds; empty for None.

    Raises:
        ValueError: it is no mapping, or there is no such file.
    """
    found: Any = {} if given is None else given
    if isinstance(given, str | PathLike):
        found = _read(name, Path(given))
    if not isinstance(found, Mapping):
        raise ValueError(
            f"{name} of {WHERE}: expected a mapping such as {example}, or the path of a YAML file "
            f"that holds one; got {found!r}."
        )
    return found


def yaml_files(*settings: Any) -> list[Path]:
    """The YAML files among some settings, absolute."""
    paths = (Path(s).absolute() for s in settings if isinstance(s, str | PathLike))
    return [path for path in paths if path.suffix in YAML]


def _read(name: str, path: Path) -> Any:
    try:
        return read_yaml(path)
    except OSError as error:
        raise ValueError(
            f"{name} of {WHERE}: expected a YAML file at {str(path)!r}; got {error.strerror}. "
            "Check the path."
        ) from error
    except ValueError as error:
        raise ValueError(f"{name} of {WHERE}: {error} Mend the file.") from error


def _check_keys(name: str, given: Mapping[str, Any], known: Any) -> None:
    for key in given:
        if key not in known:
            raise unknown("key", key, known, f"{name} of {WHERE}")


def _pair(value: Any) -> tuple[Any, Any]:
    """A number stands for both ends."""
    pair = isinstance(value, list | tuple) and len(value) == 2
    return (value[0], value[1]) if pair else (value, value)


def _range(what: str, value: Any) -> tuple[float, float]:
    low, high = (finite_number(what, end) for end in _pair(value))
    if 0 <= low <= high <= 1:
        return low, high
    raise ValueError(
        f"{what} must be a probability, or the two that it is drawn between, such as [0.2, 0.4]; "
        f"got {value!r}."
    )
