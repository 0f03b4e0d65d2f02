"""The word game and its defects, and questions of one turn, as packages of verifiers."""

import sys
from contextlib import closing, contextmanager
from itertools import count
from types import ModuleType

import verifiers.v1 as vf

from tests.support.faulty_environments import GuessWord

TASKS = 40


class WordData(vf.TaskData):
    seed: int


class WordTask(vf.Task[WordData]):
    pass


class Words(vf.Taskset[WordTask, vf.TasksetConfig]):
    INFINITE = True

    def load(self):
        seed = 0
        while True:
            yield WordTask(WordData(seed=seed))
            seed += 1


class GuessConfig(vf.EnvConfig):
    guesser: vf.AgentConfig = vf.AgentConfig()


def guess_word_env(defect):
    """The environment of the word game, which tells its agent all that was told so far."""

    class GuessWordEnv(vf.Env[GuessConfig]):
        async def run(self, task, agents):
            with closing(GuessWord(defect)) as game:
                text, _ = game.reset(seed=task.data.seed)
                total, over = 0.0, False
                async with agents.guesser.interaction(task) as talk:
                    turn = await talk.turn(text)
                    while not turn.terminated and not over:
                        text, reward, over, _, info = game.step(turn.last_reply)
                        total += reward
                        talk.trace.record_reward("earned", total)
                        talk.trace.record_metric("won", info["is_success"])
                        if not over:
                            turn = await talk.turn(text)
                talk.trace.info["secret_word"] = game.secret

    return GuessWordEnv


class SumData(vf.TaskData):
    answer: int


class SumTask(vf.Task[SumData]):
    @vf.reward
    async def right(self, task, trace):
        return float(trace.last_reply == str(task.answer))


class Sums(vf.Taskset[SumTask, vf.TasksetConfig]):
    """Questions of one turn, without an environment of their own."""

    def load(self):
        for number in range(TASKS):
            prompt = f"{number} + {number} = ?"
            told = {"system_prompt": "Answer with a number.", "prompt": prompt}
            yield SumTask(SumData(answer=2 * number, **told))


class NoTasks(Sums):
    def load(self):
        return ()


class BoxedTask(SumTask):
    NEEDS_CONTAINER = True


class Boxed(vf.Taskset[BoxedTask, vf.TasksetConfig]):
    def load(self):
        yield BoxedTask(SumData(answer=2, prompt="1 + 1 = ?"))


class PicturedTask(SumTask):
    pass


class Pictured(vf.Taskset[PicturedTask, vf.TasksetConfig]):
    def load(self):
        part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}
        yield PicturedTask(SumData(answer=2, prompt=[vf.UserMessage(content=[part])]))


class TwoConfig(vf.EnvConfig):
    solver: vf.AgentConfig = vf.AgentConfig()
    judge: vf.AgentConfig = vf.AgentConfig()


class TwoAgents(vf.Env[TwoConfig]):
    async def run(self, task, agents):
        await agents.solver.run(task)


class Falls(vf.Env[GuessConfig]):
    async def run(self, task, agents):
        async with agents.guesser.interaction(task) as talk:
            await talk.turn("Say a word.")
            raise LookupError("no more words")


NUMBERS = count()


@contextmanager
def package(*exported):
    """The address of a new package that exports some classes, importable inside."""
    name = f"package_{next(NUMBERS)}"
    module = ModuleType(name)
    for each in exported:
        setattr(module, each.__name__, each)
    module.__all__ = [each.__name__ for each in exported]
    sys.modules[name] = module
    try:
        yield f"verifiers:{name}"
    finally:
        del sys.modules[name]


def guess_word_package(defect=""):
    """The word game as a package, sound or with one defect."""
    return package(Words, guess_word_env(defect))
