"""Numbers in words, against a slow speller."""

from dialgym.language.spelled_numbers import TENS, UNITS, in_digits

SMALL = list(UNITS)
ROUND = list(TENS)


def spelled(number: int, joint: str = " ") -> str:
    if number >= 1000:
        rest = f" {spelled(number % 1000, joint)}" if number % 1000 else ""
        return f"{spelled(number // 1000, joint)} thousand{rest}"
    if number >= 100:
        rest = f"{joint}{spelled(number % 100)}" if number % 100 else ""
        return f"{SMALL[number // 100]} hundred{rest}"
    if number < 20:
        return SMALL[number]
    rest = f"-{SMALL[number % 10]}" if number % 10 else ""
    return f"{ROUND[number // 10 - 2]}{rest}"


def test_every_number_is_read_as_it_is_spelled():
    for number in (*range(1100), *range(1100, 1_000_000, 7919)):
        for joint in (" ", " and "):
            said = f"well {spelled(number, joint)} it is"
            assert in_digits(said) == f"well {number} it is", said


def test_numbers_that_are_not_one_stay_apart():
    for text, digits in (
        ("two books and three hats", "2 books and 3 hats"),
        ("one two three", "1 2 3"),
        ("a hundred bucks or 1.5 thousand", "100 bucks or 1500"),
        ("someone has a hat", "someone has a hat"),
    ):
        assert in_digits(text) == digits
