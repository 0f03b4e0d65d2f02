"""Negotiations of people: three forms of files, their contexts, their dialogues under the rules."""

import json

import numpy as np
import pytest

import dialgym
from dialgym.tasks.bargain import Bargain
from dialgym.tasks.bargain.corpus import BargainCorpus, of_split
from dialgym.tasks.bargain.negotiations import read_negotiations, scaled

AGREED = (
    "<input> 1 4 4 1 1 2 </input> <dialogue> YOU: i would like 4 hats and you can have the rest . "
    "<eos> THEM: the weather is nice <eos> YOU: hm <eos> THEM: deal <eos> YOU: <selection> "
    "</dialogue> <output> item0=0 item1=4 item2=0 item0=1 item1=0 item2=1 </output> "
    "<partner_input> 1 0 4 2 1 2 </partner_input>"
)
SEEN_BY_THE_OTHER = AGREED.replace("YOU", "ME").replace("THEM", "YOU").replace("ME", "THEM")
APART = (
    "<input> 1 6 3 0 2 2 </input> <dialogue> YOU: you can have all the hats <eos> THEM: deal <eos> "
    "YOU: ok <eos> THEM: <selection> </dialogue> <output> <disagree> <disagree> <disagree> "
    "<disagree> <disagree> <disagree> </output> <partner_input> 1 2 3 2 2 1 </partner_input>"
)
CAMP = {
    "chat_logs": [
        {"text": "Hello!", "task_data": {}, "id": "a"},
        {"text": "I need water, please", "task_data": {}, "id": "b"},
        {"text": "Submit-Deal", "id": "a", "task_data": {
            "issue2youget": {"Food": "3", "Water": "0", "Firewood": "1"}}},
        {"text": "Reject-Deal", "task_data": {"data": "reject_deal"}, "id": "b"},
        {"text": "Submit-Deal", "id": "b", "task_data": {
            "issue2youget": {"Food": "1", "Water": "3", "Firewood": "1"}}},
        {"text": "Accept-Deal", "task_data": {"data": "accept_deal"}, "id": "a"},
    ],
    "participant_info": {
        "b": {"value2issue": {"High": "Water", "Medium": "Food", "Low": "Firewood"}},
        "a": {"value2issue": {"High": "Food", "Medium": "Firewood", "Low": "Water"}},
    },
}  # fmt: skip


def sale(*events, offer=None):
    people = [{"personal": {"Role": role, "Target": target}, "item": {"Price": 14500}}
              for role, target in (("buyer", 8700), ("seller", 14500))]  # fmt: skip
    done = [{"agent": who, "action": act, "data": data} for who, act, data in events]
    price = {"price": offer} if offer else None
    return {
        "scenario": {"kbs": people},
        "outcome": {"reward": int(offer is not None), "offer": price},
        "events": done,
    }


SALES = [
    sale((1, "message", "hi"), (0, "message", "8,700?"), (1, "message", "12k, it is a 2006"),
         (0, "offer", {"price": 11600}), (1, "accept", None), offer=11600),
    sale((0, "message", "too much"), (1, "quit", None)),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    lines = [AGREED, SEEN_BY_THE_OTHER, APART]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    (tmp_path / "notes.txt").write_text("other files are passed by")
    (tmp_path / "casino_test.json").write_text(json.dumps([CAMP]))
    (tmp_path / "craigslist_dev.json").write_text(json.dumps(SALES))
    monkeypatch.setenv("DIALGYM_BARGAIN", str(tmp_path))
    return tmp_path


def test_items_are_read_once_as_who_speaks_first_saw_them(folder):
    agreed, apart = read_negotiations(folder, "items")
    assert agreed.table == (1, 4, 1)
    assert agreed.values == ((4, 1, 2), (0, 2, 2))
    assert agreed.deal == (0, 4, 0)
    assert agreed.turns[1] == "the weather is nice"
    assert (apart.deal, len(apart.turns), apart.split) == ((), 3, "train")


def test_goods_and_prices_are_read(folder):
    (camp,) = read_negotiations(folder, "goods")
    assert camp.values == ((5, 3, 4), (4, 5, 3))
    assert camp.deal == (2, 0, 2)
    assert camp.split == "test"
    sold, quit_ = read_negotiations(folder, "price")
    assert sold.table == (1000,)
    assert (sold.values, sold.deal) == (((12,), (20,)), (16,))
    assert sold.turns[0] == "600?", "what the seller says before the buyer is left out"
    assert (quit_.deal, quit_.turns[-1], quit_.split) == ((), "[leave]", "validation")


def test_prices_are_scaled():
    assert scaled("13k or 14,500.50?", 0.01) == "130 or 145?"
    assert scaled("$1300 is 10% off, or 5.5 percent", 0.1) == "$130 is 10% off, or 5.5 percent"


@pytest.mark.parametrize(("game", "split", "points"), [
    ("items", "train", [4, 0]), ("goods", "test", [2 * 5 + 2 * 4]),
    ("price", "validation", [6, 0]),
])  # fmt: skip
@pytest.mark.parametrize("words", [False, True])
def test_dialogues_end_as_people_ended_them(folder, game, split, points, words):
    task, rng = Bargain(game), np.random.default_rng(0)
    corpus = BargainCorpus(split, words)
    assert corpus.count(task) == len(points)
    for number, expected in enumerate(points):
        log = corpus.log(task, number)
        state = task.initial(rng, log.options)
        for party, text in log.turns:
            assert task.speaker(state) == party
            assert not state.over
            task.speak(state, text, rng)
        assert state.over
        assert task.points(state)[0] == expected
        assert log.kind == ("agreed" if expected else "apart")
        assert state.understood == len(log.turns) or words


def test_words_are_kept_where_they_are_understood_as_the_act(folder):
    task = Bargain("items")
    log = BargainCorpus("train", words=True).log(task, 1)
    texts = [text for _, text in log.turns]
    assert texts == ["you can have all the hats", "what do you need most?", "i accept", "i leave"]
    assert len(BargainCorpus("train").log(task, 0).turns) == 2, (
        "a pair that says nothing is left out"
    )


def test_collected_acts_are_those_of_people(folder):
    held = dialgym.collect("dialgym/Bargain-act-v0", "corpus", 2, seed=0)
    assert held.returns.tolist() == [4, 0]
    assert held["success"].tolist() == [True, False]
    assert held[0]["turns"][1]["text"] == "i take 0 books 4 hats and 0 balls"


def test_contexts_of_people_are_drawn_and_listed(folder):
    task = Bargain("items", contexts="train")
    drawn = {tuple(task.draw(np.random.default_rng(i), None)) for i in range(20)}
    assert len(drawn) == len(of_split(None, task.game, "train")) == 2
    assert task.splits["train"][0] == {"table": [1, 4, 1], "system": [4, 1, 2], "user": [0, 2, 2]}
    assert Bargain("items").splits == {}
    table = {"table": [1, 4, 1]}  # an option leaves the rest to these contexts
    assert {tuple(task.draw(np.random.default_rng(i), table)) for i in range(9)} <= drawn
    assert (
        len({tuple(Bargain("items").draw(np.random.default_rng(i), table)) for i in range(9)}) > 2
    )
    before = Bargain.surroundings({"contexts": "train"})
    (folder / "more.txt").write_text("changed")
    assert Bargain.surroundings({"contexts": "train"}) != before
    assert Bargain.surroundings({}) is None


def test_faults_are_one_clear_error(folder, monkeypatch):
    with pytest.raises(ValueError, match="of the split 'test'; it has train alone"):
        Bargain("items", contexts="test")
    with pytest.raises(ValueError, match="expected negotiations of people over goods; there are"):
        Bargain("goods", contexts="people", data=folder / "train.txt")
    (folder / "casino_valid.json").write_text('[{"chat_logs": [{}]}]')
    with pytest.raises(ValueError, match=r"casino_valid.json: expected negotiations over goods"):
        Bargain("goods", contexts="people")
    monkeypatch.delenv("DIALGYM_BARGAIN")
    with pytest.raises(ValueError, match=r"or as \$DIALGYM_BARGAIN; got neither"):
        Bargain("items", contexts="people")
