"""The word game and its defects as a game of TextArena."""

from contextlib import contextmanager

import textarena as ta
from textarena.envs.registration import ENV_REGISTRY

from tests.support.faulty_environments import TURNS, GuessWord

ID = "GuessWord-v0"


class GuessWordGame(ta.Env):
    """A game that draws from a generator of its own, and pays at the end, as TextArena's do."""

    def __init__(self, defect=""):
        self.game = GuessWord(defect)

    def reset(self, num_players, seed=None):
        self.state = ta.SinglePlayerState(num_players=num_players, max_turns=TURNS)
        self.total = 0.0
        self.told, _ = self.game.reset(seed=seed)
        self.state.reset(player_prompt_function=lambda player_id, game_state: self.told)

    def step(self, action):
        text, reward, over, _, _ = self.game.step(action)
        self.told, news = text, text.removeprefix(self.told).strip()
        self.total += reward
        self.state.add_observation(news, ta.ObservationType.GAME_MESSAGE)
        if over:
            self.state.set_outcome(reward=self.total, reason=news)
        masks = getattr(self.game, "action_masks", None)
        self.state.step_info = {} if masks is None else {"action_mask": masks()}
        return self.state.step()


@contextmanager
def guess_word_game(defect=""):
    """The id of the game, sound or with one defect, registered inside."""
    ta.register(ID, GuessWordGame, defect=defect)
    try:
        yield ID
    finally:
        del ENV_REGISTRY[ID]
