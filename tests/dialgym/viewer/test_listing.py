"""Stored dialogues as a list, one by one, and held once more."""

import numpy as np
import pytest

import dialgym
from dialgym.datasets import Dataset
from dialgym.datasets.schema import arrow
from dialgym.viewer.listing import Listing
from dialgym.viewer.query import Query
from dialgym.viewer.replay import replayed

SMALL = "dialgym/Wordle-20-v0"


@pytest.fixture(scope="module")
def dataset():
    pytest.importorskip("pyarrow")
    return dialgym.collect(SMALL, "random", 30) + dialgym.collect(SMALL, "optimal", 30)


@pytest.fixture
def listing(dataset):
    return Listing(dataset)


def rows_of(listing, **query):
    return [row["row"] for row in listing.page(Query({"limit": "200", **query}))["rows"]]


def test_a_page_has_so_many_rows_and_tells_how_many_there_are(listing):
    page = listing.page(Query({"offset": "58", "limit": "10"}))
    assert (page["total"], page["found"]) == (60, 60)
    assert [row["row"] for row in page["rows"]] == [58, 59]
    assert page["mean"] == pytest.approx(listing.returns.mean())


def test_an_analysis_names_failed_dialogues(listing, monkeypatch):
    [group] = listing.analysis["failures"]
    failed = np.flatnonzero(~listing.dataset["success"].astype(bool)).tolist()
    assert (group["count"], group["rows"]) == (len(failed), failed[:5])
    assert listing.analysis["tables"][0]["title"] == "Success by domain"
    monkeypatch.setattr("dialgym.viewer.listing.MOST_ANALYZED", 7)
    assert "7 dialogues" in Listing(listing.dataset).analysis["caption"]


def test_filters_narrow_the_list(listing):
    assert rows_of(listing, policy="optimal") == list(range(30, 60))
    solved = np.flatnonzero(listing.dataset["success"].astype(bool)).tolist()
    assert rows_of(listing, success="yes") == solved
    assert rows_of(listing, least="-1") == np.flatnonzero(listing.returns >= -1).tolist()
    assert rows_of(listing, most="-5.5") == np.flatnonzero(listing.returns <= -5.5).tolist()
    assert rows_of(listing, policy="nobody") == []


def test_the_list_is_sorted(listing):
    returns = [float(listing.returns[row]) for row in rows_of(listing, sort="return")]
    assert returns == sorted(returns)
    falling = [listing.lengths[r] for r in rows_of(listing, sort="length", descending="true")]
    assert falling == sorted(falling, reverse=True)


def test_search_looks_at_what_anybody_said_whatever_the_case(listing):
    word = listing.dialogue(0)["turns"][0]["text"]
    found = rows_of(listing, q=word.upper())
    assert 0 in found
    for row in range(60):
        said = any(word in turn["text"] for turn in listing.dialogue(row)["turns"])
        assert (row in found) == said


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"sort": "taste"}, "sort of the request must be one of"),
        ({"offset": "-1"}, "offset of the request must be a whole number"),
        ({"limit": "many"}, "limit of the request must be a whole number"),
        ({"least": "low"}, "least must be a finite number"),
    ],
)
def test_what_cannot_be_asked_is_refused(listing, query, message):
    with pytest.raises(ValueError, match=message):
        listing.page(Query(query))


def test_a_dialogue_has_its_turns_with_styles_and_seeds_as_text(listing):
    found = listing.dialogue(3)
    assert found["task"] == "Wordle"
    assert isinstance(found["seed"], str)
    first, answer = found["turns"][:2]
    assert first["said"]
    assert first["reward"] <= 0
    assert not answer["said"]
    assert {style for _, style in answer["pieces"]} <= {"right", "near", "absent", ""}
    assert "".join(text for text, _ in answer["pieces"]) == answer["text"]
    with pytest.raises(LookupError, match="there is no dialogue 60; there are 60"):
        listing.dialogue(60)


def test_a_dialogue_held_again_tells_parts_masks_and_what_is_open(listing):
    found = replayed(listing.dataset.select([1]))
    stored = listing.dataset[1]["turns"]
    assert found["same"]
    own = [place for place, turn in enumerate(stored) if turn["said"]]
    assert list(found["turns"]) == own
    for place in own:
        note = found["turns"][place]
        assert sum(note["components"].values()) == pytest.approx(stored[place]["reward"])
        assert [step["char"] for step in note["allowed"]] == [*stored[place]["text"], ""]
        assert stored[place]["text"][0] in note["allowed"][0]["next"]
        assert note["allowed"][-1]["end"]
    assert found["turns"][own[0]]["bits"] == pytest.approx(np.log2(20))


def test_acts_and_their_masks_are_named():
    pytest.importorskip("pyarrow")
    data = dialgym.collect("CamRestaurants-Env1-act-v0", "handcrafted", 1)
    found = replayed(data)
    assert found["same"]
    for place, turn in enumerate(data[0]["turns"]):
        if turn["said"]:
            assert found["turns"][place]["act"] in found["turns"][place]["acts"]


def changed(dataset, **columns):
    """The first dialogue with other values."""
    row = {**dataset[0], **columns}
    return Dataset(arrow().Table.from_pylist([row], schema=dataset.table.schema))


def test_parts_of_rewards_that_are_not_those_of_the_rules_are_not_shown(dataset):
    turns = [{**turn, "reward": 7.0 if turn["said"] else 0.0} for turn in dataset[0]["turns"]]
    found = replayed(changed(dataset, turns=turns))
    assert found["same"]
    assert not found["rewarded"]
    assert not any("components" in note for note in found["turns"].values())


def test_a_dialogue_that_goes_another_way_is_said_to(dataset):
    assert not replayed(changed(dataset, seed=1))["same"]


def test_a_dialogue_of_code_that_nobody_trusts_is_shown_without_rules(dataset):
    bad = changed(dataset, env="evil_module:Task")
    assert Listing(bad).dialogue(0)["turns"][0]["text"] == dataset[0]["turns"][0]["text"]
    with pytest.raises(ValueError, match="it names 'evil_module:Task'"):
        replayed(bad)
