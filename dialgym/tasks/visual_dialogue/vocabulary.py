"""The words of visual dialogues about generated scenes, for a tokenizer of words."""

from functools import cache

from dialgym.tasks.visual_dialogue.answers import VAGUE, AnswerBook
from dialgym.tasks.visual_dialogue.captions import captions, described
from dialgym.tasks.visual_dialogue.questions import all_questions, text
from dialgym.tasks.visual_dialogue.scenes import generate
from dialgym.tasks.visual_dialogue.understanding import ANY, WORDS

OTHERS = (
    "color",
    "are",
    "any",
    "do",
    "you",
    "see",
    "side",
    "can",
    "describe",
    "it",
    "they",
    "that",
)
"""Words of questions that are understood too."""


@cache
def vocabulary() -> tuple[str, ...]:
    """All words of captions, questions, answers and descriptions, sorted."""
    scenes = generate(0).part(0, 600)  # enough for every word to come up
    told = {word for caption in captions(scenes) for word in caption.split()}
    for scene in range(len(scenes.ground)):
        told.update(*[described(thing).split() for thing in scenes.things(scene)])
    answers = AnswerBook(scenes, 0.0)
    for question in all_questions():
        told.update(text(question).split())
        told.update(*[said.split() for said in answers.answers(question).texts])
    told.update(*[said.split() for said in VAGUE])
    return tuple(sorted(told | set(OTHERS) | set(ANY) | set(WORDS)))
