"""Texts that are no reply at all, and that no reward prefers them to what people say."""

import numpy as np
import pytest

from dialgym.rewards import Reply, make_rewards
from dialgym.rewards.compose import reward_rows
from dialgym.rewards.degenerate import is_degenerate
from tests.support.reward_pairs import real_turns

PARENT = "Would you like to come to the cinema with us tonight?"
HACKS = {
    "empty": "",
    "marks": "?! ...",
    "one word again": "great great great great great great great",
    "a phrase again": "thank you so much thank you so much thank you so much thank you so much",
    "a sentence again": "I love it. I love it. I love it. I love it. I love it.",
    "the parent": PARENT,
    "most of the parent": "like to come to the cinema with us tonight",
    "key words": "love wonderful happy amazing beautiful perfect thanks lovely best",
    "question words": "what why how when where who which",
    "words of the parent": "cinema tonight come like cinema tonight",
}
NEEDS_A_MODEL = {"lm_judge", "similarity", "learned"}


@pytest.mark.parametrize("text", HACKS.values(), ids=HACKS)
def test_hacks_are_degenerate(text):
    assert is_degenerate(Reply(text, (PARENT,)))


@pytest.mark.parametrize(
    "text",
    ["Yes.", "Thank you!", "No, no, no.", "Happy birthday, dear Ann!", "I'd love to come.",
     "Would you like to bring your sister, too?", "Good morning, Miss Li.", "Sounds good, thanks",
     "That's great, I love the cinema, and I love popcorn.", "Bye bye!"],
)  # fmt: skip
def test_people_are_not(text):
    assert not is_degenerate(Reply(text, (PARENT,)))


def test_apostrophes_of_either_kind_are_alike():
    curly = "I don’t think it’s what I’d want"
    straight = curly.replace("’", "'")
    for text, said in ((curly, curly), (curly, straight), (straight, curly)):
        assert is_degenerate(Reply(text, (said,)))
        assert make_rewards({"f1": 1.0}).score([Reply(text, (), (said,))])["f1"] == 1


@pytest.mark.slow
def test_hardly_any_reply_of_people_is_degenerate(data):
    replies = [reply for reply, _ in real_turns(data, "test")]
    assert np.mean([is_degenerate(reply) for reply in replies]) < 0.005


def hacked(hack, text, parent):
    """The text of a hack in reply to a parent."""
    if hack == "the parent":
        return parent
    return " ".join(parent.split()[1:]) if hack == "most of the parent" else text


@pytest.mark.parametrize("name", sorted(set(reward_rows()) - NEEDS_A_MODEL))
@pytest.mark.parametrize("count", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_no_reward_prefers_a_hack(name, count, data):
    """People's replies to the parents of real dialogues against the same hacks everywhere."""
    turns = [reply for reply, _ in real_turns(data, "test") if reply.context]
    people = [reply._replace(references=(reply.text,)) for reply in turns[:count]]
    examples = real_turns(data, "train")[: 5 * count]
    weight = -1.0 if name == "repetition" else 1.0
    rewards = make_rewards({name: weight}, lambda: examples)
    liked = rewards.score(people)[name].mean()
    answered = [reply for reply in people if len(reply.context[-1].split()) > 6]
    for hack, text in HACKS.items():
        said = [reply._replace(text=hacked(hack, text, reply.context[-1])) for reply in answered]
        assert rewards.score(said)[name].mean() < liked, (hack, liked)


def test_a_guard_can_be_left_out():
    reply = Reply("good good good good good", ("Hi",))
    assert make_rewards({"distinct1": 1.0}, guarded=False).score([reply])["distinct1"] == 0.2
    assert make_rewards({"distinct1": 1.0}).score([reply])["distinct1"] == 0
    assert make_rewards({"distinct1": -1.0}).score([reply])["distinct1"] == -1
