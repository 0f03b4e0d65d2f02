"""The command line of the program ``dialgym``; `dialgym --help` lists its commands.

| module | commands |
|---|---|
| `tasks` | ``list``, ``check``, ``check-domain`` |
| `zoo` | ``zoo`` |
| `play`, `chat` | ``play`` and ``chat`` |
| `collect` | ``collect`` |
| `data` | ``data``, ``import``, ``push`` |
| `train` | ``train`` |
| `train_models` | ``train guesser``, ``train reward-model`` |
| `serve` | ``serve openenv``, ``serve visual`` |
| `export` | ``export`` writes folders for other libraries |
| `evaluate` | ``evaluate``, ``report`` |
| `benchmark`, `leaderboard` | ``benchmark`` plays ids, suites and panels, ``leaderboard`` reads |
| `view` | ``view`` |
| `app`, `common`, `templates` | the program, and parts that commands share |
| `terminal` | encodings and width |
"""

import sys

from dialgym.cli.terminal import prepare_terminal
from dialgym.io.sigterm import exit_status, handle_sigterm

__all__ = ["main"]


def main() -> None:
    """Run the program `dialgym`."""
    prepare_terminal()
    handle_sigterm()
    try:
        from dialgym.cli.app import app  # which looks at the terminal
    except KeyboardInterrupt as interrupt:
        print("\nInterrupted.", file=sys.stderr)
        sys.exit(exit_status(interrupt))
    app()
