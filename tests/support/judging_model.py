"""Language models behind a service that judge dialogues whose success they know."""

from collections.abc import Callable
from hashlib import sha256

from dialgym.experiments.user_dialogues import Goals
from dialgym.rewards.lm_judge import LanguageModelJudge
from dialgym.views.extras import whole_reply

Opinion = Callable[[bool, float], float]
"""Score by the success of a dialogue and a number from 0 to 1 that is the dialogue's own."""


def truthful(success, draw):
    return float(success)


def agreeable(success, draw):
    return 1.0


def random(success, draw):
    return round(draw, 3)


def lenient(rate):
    """Calls that share of failures a success."""
    return lambda success, draw: 0.9 if success or draw < rate else 0.1


class JudgingModel:
    """Answers requests of a judge, ``party="user"``, about dialogues that it has seen before.

    Attributes:
        truths: success by the text that the judge is sent.
    """

    def __init__(self, env, policies, episodes, opinion: Opinion, seed=0, env_kwargs=None, salt=0):
        self.opinion, self.salt, self.truths = opinion, salt, {}
        goals = Goals.of("JudgingModel", env, env_kwargs, seed, episodes)
        judge = LanguageModelJudge(model="stub", party="user")
        for policy in policies:
            ended = goals.ended(policy)
            for state, success in zip(ended.states, ended.success.tolist()):
                reply = whole_reply(goals.task, state, goals.learner, 0, "")
                text = judge.messages(reply)[1]["content"]
                assert self.truths.setdefault(text, success) == success

    def score(self, text: str) -> float:
        """Score of the dialogue that a request is about."""
        digest = sha256(f"{self.salt} {text}".encode()).hexdigest()
        return self.opinion(self.truths[text], int(digest[:8], 16) / 2**32)

    def __call__(self, body) -> str:
        return f"Score: {self.score(body['messages'][1]['content'])}"
