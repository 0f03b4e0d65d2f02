"""The word game and its defects as an application of OpenEnv."""

from openenv.core import env_server

from tests.support.faulty_environments import GuessWord


class Say(env_server.types.Action):
    text: str


class Told(env_server.types.Observation):
    text: str
    action_mask: list[int] | None = None


def guess_word_app(defect=""):
    """The word game behind a server; "secret in info" is in its state."""

    class Served(env_server.Environment):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self):
            super().__init__()
            self.game = GuessWord(defect)

        def _told(self, text, reward=None, done=False, info=None):
            masks = getattr(self.game, "action_masks", None)
            allowed = None if masks is None else masks().tolist()
            return Told(text=text, reward=reward, done=done, action_mask=allowed)

        def reset(self, seed=None, episode_id=None, **options):
            text, _ = self.game.reset(seed=seed)
            return self._told(text)

        def step(self, action, timeout_s=None, **more):
            text, reward, over, _, _ = self.game.step(action.text)
            return self._told(text, reward, over)

        @property
        def state(self):
            shown = {"secret_word": self.game.secret} if defect == "secret in info" else {}
            return env_server.types.State(step_count=self.game.turn, **shown)

        def close(self):
            self.game.close()

    return env_server.create_fastapi_app(Served, Say, Told, max_concurrent_envs=64)
