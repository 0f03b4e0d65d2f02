"""Write the built-in comments on posts, with scores and toxicity.

    python scripts/build_comments.py [--out FILE]

The texts lie in `scripts/comments`, a file a few kinds of posts; see `phrases.py` for how phrases
are written. A post (``== name``) has phrases for itself (``parent``), for what it is about
(``thing``) and for each kind of comment; `common.txt` has phrases for each kind that fit any post.
A post has one to four comments. A parent is in one split alone.

Toxicity follows from the kind: 0, but 1 for a rude comment and 2 for an insulting one. With w the
words of a comment and r its words of five letters or more that the parent has too, its score is

    round(q * exp(0.5 e1) + 3 e2),   q = WORTH[kind] + 0.3 min(w, 20) + 3 min(r, 2),

where e1 and e2 are drawn each time, sums of three uniform numbers, nearly normal, of unit variance.
So an insult may be popular, and kind words may be overlooked; on the whole, it is not so.

All texts were written for dialgym. `corpus_figures.py` prints what there is: nine of ten comments
are distinct, one of seven of the test's is in training too.
"""

import argparse
import re
from collections.abc import Container, Mapping, Sequence
from math import exp
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from build_everyday import with_splits, write_rows, write_turn
from domain_texts import Draw
from phrases import Lexicon, Speech, read_blocks, read_lexicon

ROOT = Path(__file__).parents[1]
TEXTS = ROOT / "scripts" / "comments"
OUT = ROOT / "dialgym" / "tasks" / "comments" / "comments.jsonl.gz"

POSTS, SEED, SHARE_OF_COMMON = 1630, 21, 0.3
COMMENTS = (1, 2, 2, 2, 3, 3, 3, 4)  # of a post; 2.5 on average
WORTH = {
    "supportive": 5.0,
    "informative": 8.0,
    "joking": 9.0,
    "sarcastic": 1.0,
    "rude": -6.0,
    "insulting": -14.0,
}
SHARES = {
    "supportive": 0.24,
    "informative": 0.2,
    "joking": 0.17,
    "sarcastic": 0.13,
    "rude": 0.15,
    "insulting": 0.11,
}
TOXICITY = {"rude": 1, "insulting": 2}


class Post(NamedTuple):
    """Phrases of a kind of posts and of comments on them."""

    name: str
    phrases: Mapping[str, str]
    lexicon: Lexicon


def read_posts(path: Path, common: Lexicon) -> list[Post]:
    """The kinds of posts of a file."""
    blocks = read_blocks(path.read_text("utf-8").splitlines())
    lexicon = common.joined(read_lexicon(blocks))
    blocks = [block for block in blocks if block[0][0] not in "@$"]
    starts = [i for i, (key, _) in enumerate(blocks) if key.startswith("==")]
    posts = []
    for begin, end in zip(starts, [*starts[1:], len(blocks)]):
        name, phrases = blocks[begin][0].strip("= "), dict(blocks[begin + 1 : end])
        if set(phrases) != {"parent", "thing", *WORTH}:
            raise ValueError(f"{name}: expected parent, thing, {', '.join(WORTH)}; got {phrases}.")
        about = Lexicon({}, {"thing": phrases.pop("thing")})
        posts.append(Post(name, phrases, lexicon.joined(about)))
    return posts


def write_post(post: Post, draw: Draw, known: Container[str] = ()) -> list[dict[str, Any]]:
    """A parent and its comments, as rows; a `known` comment is worded again, a few times."""
    speech = Speech(post.lexicon, draw)
    parent = speech.write(post.phrases["parent"])
    rows: dict[str, dict[str, Any]] = {}
    for _ in range(draw.one(COMMENTS)):
        row = write_comment(post, parent, speech, known)
        rows.setdefault(row["comment"], row)
    return list(rows.values())


def write_comment(post: Post, parent: str, speech: Speech, known: Container[str]) -> dict[str, Any]:
    """A comment of a kind that is drawn, with its score and toxicity."""
    draw = speech.draw
    kind = draw_kind(draw)
    common = draw.chance(SHARE_OF_COMMON)
    comment = write_turn(speech, f"<{kind}>" if common else post.phrases[kind], known)
    return {
        "parent": parent,
        "comment": comment,
        "score": score(kind, parent, comment, draw),
        "toxicity": TOXICITY.get(kind, 0),
    }


def draw_kind(draw: Draw) -> str:
    """A kind of comment, by `SHARES`."""
    left = draw.random() * sum(SHARES.values())
    for kind, share in SHARES.items():
        left -= share
        if left < 0:
            return kind
    return kind


def score(kind: str, parent: str, comment: str, draw: Draw) -> int:
    """The score of a comment; the formula is that of the module's docstring."""
    shared = content_words(parent) & content_words(comment)
    words = len(comment.split())
    worth = WORTH[kind] + 0.3 * min(words, 20) + 3 * min(len(shared), 2)
    return round(worth * exp(0.5 * unit_noise(draw)) + 3 * unit_noise(draw))


def unit_noise(draw: Draw) -> float:
    """A sum of three uniform numbers, of mean 0 and variance 1."""
    return 2 * (draw.random() + draw.random() + draw.random() - 1.5)


def content_words(text: str) -> set[str]:
    """The words of five letters or more."""
    return set(re.findall(r"[a-z]{5,}", text.lower()))


def write_all(posts: Sequence[Post], draw: Draw, size: int = POSTS) -> list[list[dict[str, Any]]]:
    """The rows of `size` posts, as many of one kind as of another, no parent twice."""
    parents: set[str] = set()
    known: set[str] = set()
    written: list[list[dict[str, Any]]] = []
    for i, post in enumerate(posts):
        wanted = (i + 1) * size // len(posts)
        for _ in range(100 * size // len(posts)):
            if len(written) == wanted:
                break
            rows = write_post(post, draw, known)
            if (parent := rows[0]["parent"]) not in parents:
                parents.add(parent)
                known.update(row["comment"] for row in rows)
                written.append(rows)
        else:
            raise ValueError(f"{post.name}: too few parents.")
    return written


def all_posts(folder: Path = TEXTS) -> list[Post]:
    """The kinds of posts of all files, in the order of their names."""
    common = read_lexicon(read_blocks((folder / "common.txt").read_text("utf-8").splitlines()))
    paths = sorted(path for path in folder.glob("*.txt") if path.stem != "common")
    return [post for path in paths for post in read_posts(path, common)]


def build() -> list[dict[str, Any]]:
    """All rows of the file."""
    draw = Draw(Random(SEED))
    posts = [{"rows": rows} for rows in write_all(all_posts(), draw)]
    return [
        {"split": post["split"], **row} for post in with_splits(posts, draw) for row in post["rows"]
    ]


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    write_rows(build(), parser.parse_args().out)


if __name__ == "__main__":
    main()
