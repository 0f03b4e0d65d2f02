"""The command line of the program ``dialgym``; `dialgym --help` lists its commands.

| module | commands |
|---|---|
| `tasks` | ``list``, ``check``, ``check-domain`` |
| `play`, `chat` | ``play`` and ``chat`` |
| `collect` | ``collect`` |
| `train` | ``train`` |
| `train_guesser`, `train_reward_model` | ``train guesser``, ``train reward-model`` |
| `serve_visual` | ``serve-visual`` |
| `benchmark`, `report` | ``evaluate``, ``benchmark``, ``report`` |
| `view` | ``view`` |
| `app`, `common` | the program, and what its commands share |
"""

from dialgym.cli.app import app

__all__ = ["app", "main"]


def main() -> None:
    """The entry point of the program `dialgym`."""
    app()
