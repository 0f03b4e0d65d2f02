"""English of people who bargain: what is proposed, by what was offered before; no false yes."""

from itertools import product

import numpy as np
import pytest

from dialgym.simulators.human import HumanSpeaker
from dialgym.tasks.bargain import Bargain
from dialgym.tasks.bargain.car_dealer import CarDealer
from dialgym.tasks.bargain.types import ACCEPT, ASK, INSIST, LEAVE, NONE, REJECT, PriorOffers

ITEMS, GOODS, PRICE = (Bargain(game) for game in ("items", "goods", "price"))
CARS = CarDealer()
TASKS = {"items": ITEMS, "goods": GOODS, "price": PRICE, "cars": CARS}
ACTS = {"accept": ACCEPT, "reject": REJECT, "insist": INSIST, "ask": ASK, "leave": LEAVE}
LAMP = PRICE.game.tables.index((300,))
"""At 300 dollars: the buyer has offered 180, and the seller asks 300."""
ASKED = PriorOffers(0, (12 - 8, 20 - 8), stands=True)
THINGS = ITEMS.game.tables.index((2, 1, 3))
SHARE = ITEMS.game.code
OFFERED = PriorOffers(0, (SHARE((2, 1, 0)), SHARE((1, 0, 2))), stands=True)
"""The system wants both books and the hat; it is to have a book and two balls."""
CAMP = PriorOffers(1, (GOODS.game.code((2, 1, 2)), NONE), stands=True)
"""The user is offered a food, two waters and a firewood."""
SUV = PriorOffers(1, (CARS.game.code(1, 20), CARS.game.code(1, 16)), stands=True)


def read(task, row, text, heard):
    code = task.understanding.read(row, text, heard)
    acts = {task.game.size + act: name for name, act in ACTS.items()}
    return acts.get(code, None if code == NONE else task.texts[row][code])


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ("20% off", 240),  # of the list price
        ("how about a 10 percent discount", 270),
        ("20 percent less", 240),  # than what is asked
        ("10% below your offer", 270),
        ("30 dollars less", 270),
        ("$30 more", 210),  # than the own offer
        ("I could add another $15", 195),
        ("two hundred and ten", 210),
        ("two fifty", 255),
        ("a hundred and ninety bucks", 195),
        ("half price", 150),
        ("I'll pay the asking price", 300),
        ("meet me in the middle", 240),
        ("halfway between our offers", 240),
        ("let's split the difference", 240),
        ("can't go below 270", 270),
        ("I can't do 270, how about 240?", 240),
        ("couldn't you do 225?", 225),
        ("ok then 240?", 240),
        ("i refuse to go above 240", 240),
        ("i reject 270 i offer 240", 240),
        ("i decline your offer and offer 240", 240),
        ("it is 2 years old and I paid 280, but I would take 255", 255),
    ],
)  # fmt: skip
def test_prices_and_what_they_refer_to(text, price):
    assert read(PRICE, LAMP, text, ASKED) == f"i offer {price} dollars"


def test_prices_in_thousands():
    row = PRICE.game.tables.index((1000,))
    for text in ("$1,000", "1k", "a thousand", "one thousand bucks"):
        assert read(PRICE, row, text, ASKED) == "i offer 1000 dollars"


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("everything", (2, 1, 3)),
        ("all of the books", (2, 0, 0)),
        ("I take the hat, the rest is yours", (0, 1, 0)),
        ("i need the books, the rest to you", (2, 0, 0)),
        ("I take the hat, you keep the others", (0, 1, 0)),
        ("half of the books", (1, 0, 0)),
        ("one of each", (1, 1, 1)),
        ("none of the books for me", (0, 1, 3)),
        ("both books for me, the others to you", (2, 0, 0)),
        ("everything but the hat", (2, 0, 3)),
        ("everything minus 1 ball", (2, 1, 2)),
        ("you get the hat and nothing else", (2, 0, 3)),
        ("i'll give you the hat and the balls for the books", (2, 0, 0)),
        ("i can't give up the hat but you can have the rest", (0, 1, 0)),
        ("why don't you take the balls", (2, 1, 0)),
        ("ok, take the balls", (2, 1, 0)),
        ("all i want is the hat", (0, 1, 0)),
        ("2 books, rest for you", (2, 0, 0)),
        ("the hat is mine, the rest is yours", (0, 1, 0)),
        ("if i can have all books the hat and balls are yours", (2, 0, 0)),
        ("i take 2 books and the hat is yours", (2, 0, 3)),
        ("i take 2 books and hat is yours", (2, 0, 3)),
        ("you take the hat and the books are mine", (2, 0, 0)),
        ("i take 2 books and 1 hat and the balls are yours", (2, 1, 0)),
        ("i want 1 book and 2 balls and the hat is yours", (1, 0, 2)),
        ("i take 2 books 1 hat and the balls are for you", (2, 1, 0)),
        ("i take 2 books and the balls will be yours", (2, 1, 0)),
        ("i take 2 books and the hat and balls are yours", (2, 0, 0)),
        ("the books are mine and the hat and the balls are yours", (2, 0, 0)),
        ("i have 2 books and 1 hat for you", (0, 0, 3)),
        ("i want the hat and the balls to be yours", (2, 0, 0)),
        ("you can have everything else but the hat", (0, 1, 0)),
        ("that doesn't work i want the hat and two balls", (0, 1, 2)),
        ("throw in a ball and we have a deal", (1, 0, 3)),  # to what was offered
        ("give me one more book", (2, 0, 2)),
        ("i also need the hat", (1, 1, 2)),
    ],
)  # fmt: skip
def test_shares_and_what_they_refer_to(text, share):
    assert read(ITEMS, THINGS, text, OFFERED) == ITEMS.game.proposal((), SHARE(share))


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("i take two food and one water", (2, 1, 1)),  # people agree kind by kind
        ("can i have all the firewood?", (1, 2, 3)),
        ("let's talk about water. you take 2 i take 1", (1, 1, 1)),
        ("2 of each for you", (1, 1, 1)),
        ("i take 3 food and 1 water and the firewood is yours", (3, 1, 0)),
    ],
)  # fmt: skip
def test_kinds_that_are_not_named_are_as_they_were(text, share):
    assert read(GOODS, 0, text, CAMP) == GOODS.game.proposal((), GOODS.game.code(share))


@pytest.mark.parametrize(
    ("text", "deal"),
    [("20% off", "the suv for 16000 dollars"), ("meet in the middle", "the suv for 18000 dollars"),
     ("1000 less", "the suv for 19000 dollars"), ("eighteen grand", "the suv for 18000 dollars"),
     ("10% off the sedan", "the sedan for 9000 dollars"),
     ("ok 17,000?", "the suv for 17000 dollars")],
)  # fmt: skip
def test_prices_of_cars(text, deal):
    assert read(CARS, 0, text, SUV) == deal
    assert read(CARS, 0, f"i decline 7000 dollars, {text}", SUV) == deal
    assert read(CARS, 0, "i decline 7000 dollars", SUV) == "reject"


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("deal!", "accept"), ("ok", "accept"), ("sounds fair to me.", "accept"),
        ("ok, 300 it is", "accept"), ("300 works for me, thanks", "accept"),
        ("You got yourself a deal", "accept"), ("fine, I'll take it", "accept"),
        ("i decline 270 dollars", "reject"), ("i refuse to pay 270", "reject"),
        ("i reject your offer of 270", "reject"), ("270 is rejected", "reject"),
        ("no to 270", "reject"), ("no way", "reject"), ("270 is too much", "reject"),
        ("not a chance", "reject"),
        ("that's my last word", "insist"), ("take it or leave it", "insist"),
        ("what is the lowest you would take?", "ask"), ("i'm out", "leave"),
        ("add the floor mats", None), ("let me think", None), ("210-220", None),
    ],
)  # fmt: skip
def test_acts_of_people(text, act):
    assert read(PRICE, LAMP, text, ASKED) == act


@pytest.mark.parametrize(
    ("task", "said", "text", "doubt"),
    [
        (ITEMS, [], "i accept", "No offer of the other one stands."),
        (ITEMS, ["i take 2 books 0 hats and 0 balls"], "no way", None),
        (ITEMS, [], "my final offer", "You have made no offer yet."),
        (ITEMS, [], "i want 3 books", "There are 2 books 1 hat and 3 balls. To propose what "),
        *((ITEMS, [], f"i take {amount}", "There are 2 books 1 hat and 3 balls. ")
          for amount in ("1.5 balls", "-1 books", "minus 1 books", "minus two books and a hat")),
        (ITEMS, ["i take 2 books 0 hats and 0 balls"], "give me 1.5 more balls", "There are 2 "),
        (ITEMS, [], "half of the hats", "There are 2 books 1 hat and 3 balls. To propose what "),
        (ITEMS, [], "let's split it evenly", "There are 2 books 1 hat and 3 balls. "),
        (ITEMS, [], "you look nice", "To propose what you get yourself, say for example: i take "),
        (PRICE, [], "$900", "Prices are from 40 to 110, named or by the last offers"),
        (PRICE, ["i offer 60 dollars"], "meet me in the middle", "Prices are from "),
        (PRICE, [], "add the floor mats", "To propose what you get yourself, say for example: i "),
        (CARS, [], "the suv for 5k", "Name the sedan, suv or truck, and a price from 60 to 110 % "),
        (CARS, [], "let us talk about the brand", None),
    ],
)  # fmt: skip
def test_who_is_not_understood_is_told_what_can_be_said(task, said, text, doubt):
    options = {"items": {"table": [2, 1, 3]}, "price": {"table": 100}}.get(task.game.name)
    rng = np.random.default_rng(0)
    state = task.initial(rng, options)
    for one in said:
        task.speak(state, one, rng)
    found = task.unclear(state, text)
    assert found is None if doubt is None else found.startswith(doubt)


def test_a_person_is_asked_again_and_told_why():
    said = iter(["i want 3 books", "i take 2 books 0 hats and 1 ball"])
    speaker = HumanSpeaker(ask=lambda prompt: next(said))
    with speaker.console.capture() as shown:
        task = Bargain(constraint=None)
        state = task.initial(np.random.default_rng(0), {"table": [2, 1, 3]})
        assert speaker.reply(task, state, np.random.default_rng(0)).startswith("i take 2")
    assert "There are 2 books 1 hat and 3 balls." in " ".join(shown.get().split())


AGREEING = ("ok", "deal", "i accept", "sounds good", "that works for me", "yes", "i'll take it")
DOUBTS = (" but not yet", " if you deliver it", "?", ", unless it is broken", " when it is cheaper")
UNSURE = (
    *("i can't accept that", "no deal", "would you accept that?", "i am able to accept cash"),
    *("you drive a hard deal with me", "thank you!", "you too", "a great deal of work", "not ok"),
    *("is that ok with you?", "it is in great condition", "i would agree if it was less"),
    *(
        "i agree to your first offer",
        "let's make a deal",
        "do we have a deal?",
        "okay then i will have to look elsewhere",
    ),
    *("give me the hat and we have a deal", "once you accept my offer", "hi", "half of it", ""),
)


@pytest.mark.parametrize("name", TASKS)
def test_no_text_that_doubts_is_an_acceptance(name):
    task = TASKS[name]
    heard = {"items": OFFERED, "goods": CAMP, "price": ASKED, "cars": SUV}[name]
    row = {"items": THINGS, "price": LAMP}.get(name, 0)
    for text in (*map("".join, product(AGREEING, DOUBTS)), *UNSURE):
        assert read(task, row, text, heard) != "accept", text
    for text in AGREEING:
        assert read(task, row, text, heard) == "accept", text
    assert read(task, row, "yes", heard._replace(asked=True)) is None, "it answers a question"


@pytest.mark.parametrize("name", TASKS)
def test_every_act_is_read_from_its_text_whatever_was_said_before(name):
    """Not by the text as a whole, which would be known: by the rules of English."""
    task = TASKS[name]
    rows = range(0, len(task.texts), 5)
    for row, texts in ((row, task.texts[row]) for row in rows):
        possible = [code for code in range(task.game.size) if texts[code]]
        offers = tuple(task.game.outcome[0][row, [possible[0], possible[-1]]].tolist())
        for heard in (
            PriorOffers(),
            PriorOffers(0, offers, True),
            PriorOffers(1, offers, True, True),
        ):
            for code, text in enumerate(texts):
                if text:
                    said = f"Well, {text}"
                    assert task.understanding.read(row, said, heard) == code, (said, heard)
