"""Goals of users, drawn from a goal model as ConvLab-2 draws them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dialgym.errors import unknown
from dialgym.tasks.multiwoz.database import CityDatabase
from dialgym.tasks.multiwoz.goal_model import ENDS, TIMES, DomainModel, GoalModel
from dialgym.tasks.multiwoz.ontology import DAYS
from dialgym.tasks.multiwoz.types import DomainGoal, MultiWOZGoal

VERSION = 1
"""Of the way in which goals are drawn; another version draws other goals from the same seed."""
PLACES = ("attraction", "hotel", "restaurant", "police", "hospital")
"""The domains that a taxi goes to and from."""
FORCED = {
    "hotel": ("stay", "day", "people"),
    "restaurant": ("time", "day", "people"),
    "train": ("people",),
}
"""Slots that a booking must have."""
CHANGES, DRAWS = 100, 1000
"""Most changes of a goal that no row meets, and most draws of a goal."""
Uniforms = Iterator[float]


@dataclass(slots=True)
class _Draft:
    """A domain's goal while it is drawn."""

    info: dict[str, str] = field(default_factory=dict)
    fail_info: dict[str, str] = field(default_factory=dict)
    book: dict[str, str] = field(default_factory=dict)
    requests: tuple[str, ...] = ()


def draw_goal(
    model: GoalModel,
    database: CityDatabase,
    rng: np.random.Generator,
    domains: Sequence[str] | None = None,
) -> MultiWOZGoal:
    """A goal, about `domains` in this order if any are given; takes uniform numbers, 64 at a time.

    As ConvLab-2, `goal_generator.py`: domains are drawn one by one, and then made to agree. Where
    the day of a hotel leaves no train, the train is dropped (ConvLab-2 raises a TypeError).

    Raises:
        ValueError: no row of the database meets what the model asks for, or there is no such
            domain.
    """
    uniforms = _uniforms(rng)
    ordering = model.orderings.pick(next(uniforms)) if domains is None else _known(domains, model)
    drafts = {d: _draw_domain(d, model.domains[d], database, uniforms) for d in ordering}
    _agree_taxi(drafts)
    if "restaurant" in drafts:
        _agree_restaurant(drafts, database, uniforms)
    if "hotel" in drafts and "train" in drafts:
        _agree_train(drafts, database)
    return MultiWOZGoal(
        {d: DomainGoal(g.info, g.fail_info, g.book, {}, g.requests) for d, g in drafts.items()}
    )


def _known(domains: Sequence[str], model: GoalModel) -> Sequence[str]:
    for domain in domains:
        if domain not in model.domains:
            raise unknown("domain", domain, model.domains, "the goal model of MultiWOZ")
    if isinstance(domains, str) or not domains or len(set(domains)) < len(domains):
        raise ValueError(
            f"domains of a goal of MultiWOZ: expected one or more, each once; got {domains!r}."
        )
    return domains


def _uniforms(rng: np.random.Generator) -> Uniforms:
    while True:
        yield from rng.random(64).tolist()


def _draw_domain(
    domain: str, model: DomainModel, database: CityDatabase, uniforms: Uniforms
) -> _Draft:
    """A domain's goal: something to ask for or to book, and constraints that some row meets."""
    for _ in range(DRAWS):
        draft = _Draft()
        if model.combinations is not None:
            draft.info = _draw_info(domain, model, database, uniforms)
        draft.requests = tuple(
            [s for s, chance in model.requests if next(uniforms) < chance and s not in draft.info]
        )
        if model.booking and next(uniforms) < model.booking:
            draft.book = _draw_booking(domain, model, uniforms)
        if not database.find(domain, draft.info) and not _mend(
            draft, domain, model, database, uniforms
        ):
            continue
        if draft.requests or draft.book:
            return draft
    raise ValueError(
        f"goals of {domain}: expected constraints of the goal model that some row of the database "
        f"meets, and a slot to ask for or to book; got none in {DRAWS} draws. Use the goal model "
        "that belongs to the database."
    )


def _draw_info(
    domain: str, model: DomainModel, database: CityDatabase, uniforms: Uniforms
) -> dict[str, str]:
    """Constraints: a combination of slots, and a value for each."""
    assert model.combinations is not None
    values = model.values
    info = {
        slot: values[slot].pick(next(uniforms)) for slot in model.combinations.pick(next(uniforms))
    }
    if domain in ("train", "taxi"):
        _keep_one_time(info, model, uniforms)
    if domain == "train":
        trains = database.rows("train")
        train = trains[int(next(uniforms) * len(trains))]
        info.update({end: train[end] for end in ENDS})
    elif domain == "taxi":
        _set_ends(info, model, uniforms)
    elif "name" in info and len(info) > 1:  # who knows the name needs nothing else
        if next(uniforms) < model.probability["name"]:
            return {"name": info["name"]}
        del info["name"]
    return info


def _keep_one_time(info: dict[str, str], model: DomainModel, uniforms: Uniforms) -> None:
    """Exactly one of the times: dropped or drawn as often as the other one is known."""
    by, after = TIMES
    if by in info and after in info:
        del info[by if next(uniforms) < model.share(after, by) else after]
    elif by not in info and after not in info:
        slot = by if next(uniforms) < model.share(by, after) else after
        info[slot] = model.values[slot].pick(next(uniforms))


def _set_ends(info: dict[str, str], model: DomainModel, uniforms: Uniforms) -> None:
    """Both ends of a taxi's way; where they are the same, one is drawn once more."""
    for end in ENDS:
        if end not in info:
            info[end] = model.values[end].pick(next(uniforms))
    start, goal = ENDS
    if info[start] == info[goal]:
        end = start if next(uniforms) < model.share(start, goal) else goal
        info[end] = model.values[end].pick(next(uniforms))


def _draw_booking(domain: str, model: DomainModel, uniforms: Uniforms) -> dict[str, str]:
    """Draw a booking: each slot by its probability, and those that a booking must say."""
    values = {slot: known for slot, _, known in model.bookings}
    wanted = [slot for slot, chance, _ in model.bookings if next(uniforms) < chance]
    wanted += [slot for slot in FORCED[domain] if slot not in wanted]
    return {slot: values[slot].pick(next(uniforms)) for slot in wanted}


def _mend(
    draft: _Draft, domain: str, model: DomainModel, database: CityDatabase, uniforms: Uniforms
) -> bool:
    """Change one constraint until some row meets them all, and whether one does.

    What could not be met is asked for first, unless it was a train.
    """
    slots = tuple(draft.info)
    for _ in range(CHANGES if slots else 0):
        slot = slots[int(next(uniforms) * len(slots))]
        known = model.values[slot].items
        changed = {**draft.info, slot: known[int(next(uniforms) * len(known))]}
        if database.find(domain, changed):
            if domain != "train":
                draft.fail_info = draft.info
            draft.info = changed
            return True
    return False


def _agree_taxi(drafts: Mapping[str, _Draft]) -> None:
    """A taxi goes between the places spoken of before, in time for the table that is booked."""
    if "taxi" not in drafts:
        return
    before = list(drafts)[: list(drafts).index("taxi")]
    places = [domain for domain in before if domain in PLACES]
    taxi = drafts["taxi"].info
    if places:
        del taxi["destination"]
        last = drafts[places[-1]]
        if places[-1] == "restaurant" and last.book:
            taxi.pop("leaveAt", None)
            taxi["arriveBy"] = last.book["time"]
    if len(places) > 1:
        del taxi["departure"]


def _agree_restaurant(
    drafts: Mapping[str, _Draft], database: CityDatabase, uniforms: Uniforms
) -> None:
    """Often a restaurant is in the attraction's area; its table is for the guests of the hotel."""
    order, restaurant = list(drafts), drafts["restaurant"]
    if "attraction" in order[: order.index("restaurant")] and not restaurant.fail_info:
        area = drafts["attraction"].info.get("area")
        if area is not None and "area" in restaurant.info:
            moved = {**restaurant.info, "area": area}
            if database.find("restaurant", moved) and next(uniforms) < 0.5:
                restaurant.info = moved
    if "hotel" in drafts and drafts["hotel"].book and restaurant.book:
        hotel = drafts["hotel"].book
        if next(uniforms) < 0.5:
            restaurant.book["people"] = hotel["people"]
        restaurant.book["day"] = hotel["day"]


def _agree_train(drafts: dict[str, _Draft], database: CityDatabase) -> None:
    """The train to the city is on the day of arrival at the hotel, the one back on the last."""
    hotel, train = drafts["hotel"].book, drafts["train"].info
    if not hotel:
        return
    if train["destination"] == database.home:
        train["day"] = hotel["day"]
    elif train["departure"] == database.home:
        train["day"] = DAYS[(DAYS.index(hotel["day"]) + int(hotel["stay"])) % 7]
    if not database.find("train", train):
        del drafts["train"]
