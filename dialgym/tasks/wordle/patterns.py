"""Feedback patterns: colours of a guess, for one pair, for many, as a table; and their board."""

import hashlib
from collections.abc import Sequence

import numpy as np

from dialgym.io.cache import cached_array

LENGTH = 5
PATTERNS = 3**LENGTH
SOLVED = PATTERNS - 1
INVALID = -1
"""In place of a pattern: the guess was not a word."""
RULES = ("standard", "ilql")

_PLACE = 3 ** np.arange(LENGTH - 1, -1, -1)
_DIGITS = np.arange(PATTERNS)[:, None] // _PLACE % 3  # (243, 5)
REPLIES = [" ".join("byg"[d] for d in row) for row in _DIGITS]
"""Texts of the host, for each of the 243 patterns."""


def digits(pattern: int) -> np.ndarray:
    """The colours (5,) of a pattern: 0 black, 1 yellow, 2 green."""
    return _DIGITS[pattern]


def letters(words: Sequence[str] | np.ndarray) -> np.ndarray:
    """The letters of (k,) five-letter words, (k, 5) uint8 from a = 0."""
    points = np.asarray(words, f"<U{LENGTH}").view(np.uint32).reshape(-1, LENGTH)
    return (points - ord("a")).astype(np.uint8)


def colour(guesses: np.ndarray, secrets: np.ndarray, rule: str) -> np.ndarray:
    """Patterns (...) uint8 of guesses (..., 5) against secrets (..., 5), shapes broadcast.

    ``standard``: greens first; then, from left to right, a letter is yellow as often as the
    secret still has it. ``ilql``: a letter is yellow wherever the secret has it at all, as in
    ILQL and LMRL-Gym, which do not count repeated letters.
    """
    green = [guesses[..., i] == secrets[..., i] for i in range(LENGTH)]
    pattern = np.zeros(np.broadcast_shapes(guesses.shape, secrets.shape)[:-1], np.uint8)
    for i in range(LENGTH):
        spare = _spare(guesses, secrets, green, i, rule)
        digit = np.where(green[i], np.uint8(2), spare.view(np.uint8))
        pattern += digit * np.uint8(_PLACE[i])
    return pattern


def _spare(
    guesses: np.ndarray, secrets: np.ndarray, green: list[np.ndarray], i: int, rule: str
) -> np.ndarray:
    """True where the secret has letter i of the guess somewhere, not yet accounted for."""
    here = [secrets[..., j] == guesses[..., i] for j in range(LENGTH)]
    if rule == "ilql":
        return np.logical_or.reduce(here)
    left = sum((here[j] & ~green[j]).view(np.int8) for j in range(LENGTH))
    for j in range(i):
        same = guesses[..., j] == guesses[..., i]
        left = left - (same & ~green[j]).view(np.int8)
    return np.asarray(left > 0)


def pattern_table(guesses: Sequence[str], answers: Sequence[str], rule: str) -> np.ndarray:
    """The patterns of all guesses against all answers, (G, A) uint8, computed once and kept."""
    text = "\n".join(["dialgym-1", rule, ",".join(guesses), ",".join(answers)])
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    return cached_array(f"wordle-{key}", lambda: _compute(guesses, answers, rule))


def _compute(guesses: Sequence[str], answers: Sequence[str], rule: str) -> np.ndarray:
    rows, columns = letters(guesses), letters(answers)
    table = np.empty((len(rows), len(columns)), np.uint8)
    chunk = max(1, 2**18 // max(len(columns), 1))
    for start in range(0, len(rows), chunk):
        part = slice(start, start + chunk)
        table[part] = colour(rows[part, None], columns[None], rule)
    return table


TILE, GAP = 56, 6
COLOURS = {"g": "#538d4e", "y": "#b59f3b", "b": "#3a3a3c", "": "#8b3a3a"}


def board(guesses: Sequence[str], patterns: Sequence[int], turns: int) -> np.ndarray:
    """The game as an (H, W, 3) uint8 image: a row a guess, red where it was invalid."""
    from PIL import Image, ImageDraw, ImageFont

    rows = max(turns, len(guesses))
    size = (LENGTH * (TILE + GAP) + GAP, rows * (TILE + GAP) + GAP)
    image = Image.new("RGB", size, "#121213")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(32)
    for row in range(rows):
        guess = guesses[row][:LENGTH] if row < len(guesses) else ""
        colours = _colours(patterns[row]) if row < len(guesses) else [None] * LENGTH
        for column, colour in enumerate(colours):
            x, y = GAP + column * (TILE + GAP), GAP + row * (TILE + GAP)
            box = (x, y, x + TILE, y + TILE)
            draw.rectangle(box, fill=colour, outline=None if colour else "#3a3a3c", width=2)
            letter = guess[column : column + 1].upper()
            centre = (x + TILE / 2, y + TILE / 2)
            draw.text(centre, letter, fill="white", font=font, anchor="mm")
    return np.asarray(image)


def _colours(pattern: int) -> list[str | None]:
    if pattern == INVALID:
        return [COLOURS[""]] * LENGTH
    return [COLOURS[c] for c in REPLIES[pattern][::2]]
