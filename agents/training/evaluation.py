"""Evaluation during training, and some dialogues to read at each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.logger import TensorBoardOutputFormat
from stable_baselines3.common.vec_env import VecEnv

from agents.training.tracking import log_dialogues
from dialgym.io.files import write_text
from dialgym.rollouts.policies import learns_by_sampling, takes_masks

DRAWS = 0
"""Seed of the draws of an evaluation; training's generators are put back after it."""


def evaluation(
    model: BaseAlgorithm,
    env: VecEnv,
    episodes: int,
    directory: Path,
    best: BaseCallback | None = None,
    after: BaseCallback | None = None,
    verbose: int = 0,
) -> EvalCallback:
    """The callback that evaluates each time it is called, drawing actions if the model learns so.

    It writes `evaluations.npz` into `directory`, calls `best` where the model is better than ever,
    and then `after`.
    Algorithms that are given masks are evaluated with masks.
    """
    kind = EvalCallback
    if takes_masks(model):
        from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback as kind

    class Evaluation(kind):  # type: ignore[misc, valid-type]
        def _on_step(self) -> bool:
            with torch.random.fork_rng(range(torch.cuda.device_count())):
                torch.manual_seed(DRAWS)
                return bool(super()._on_step())

    return Evaluation(
        env,
        deterministic=not learns_by_sampling(model),
        callback_after_eval=after,
        n_eval_episodes=episodes,
        eval_freq=1,
        log_path=str(directory),
        callback_on_new_best=best,
        verbose=verbose,
    )


class SampleDialogues(BaseCallback):
    """Plays one dialogue in each row of `env` and writes them down for reading.

    Into `<folder>/<timesteps>.txt`, and to TensorBoard as the text `eval/samples`. The dialogues'
    seeds and the draws of tokens are the same each time, so that texts of different times differ
    by the model alone; training's random numbers are left as they were. Meant as an
    `EvalCallback`'s `callback_after_eval`.

    Args:
        env: as many dialogues as are wanted.
        seed: of the first dialogue, and of the draws of tokens.
        folder: where the files go.
        board: a run of Weights & Biases, which gets them as a table; None for none.
    """

    def __init__(self, env: VecEnv, seed: int, folder: Path, board: Any = None) -> None:
        super().__init__()
        self.env, self.seed, self.folder, self.board = env, seed, folder, board

    def _on_step(self) -> bool:
        infos = play_once(self.model, self.env, self.seed)
        text = readable(infos, self.seed)
        if self.board is not None:
            log_dialogues(self.board, infos, self.seed, self.num_timesteps)
        write_text(self.folder / f"{self.num_timesteps}.txt", text)
        for output in self.logger.output_formats:
            # Not through `record`: the next dump would come at a later timestep.
            if isinstance(output, TensorBoardOutputFormat):
                output.writer.add_text("eval/samples", _as_code(text), self.num_timesteps)
                output.writer.flush()
        return True


def play_once(model: BaseAlgorithm, env: VecEnv, seed: int) -> list[dict[str, Any]]:
    """The info at the end of the first dialogue of each row; actions are drawn, not greedy.

    Dialogue i takes `seed` + i, the draws take `seed`. PyTorch's generators are put back after.
    """
    ended: dict[int, dict[str, Any]] = {}
    masked = takes_masks(model)
    with torch.random.fork_rng(range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        env.seed(seed)
        obs: Any = env.reset()
        state, starts = None, np.ones(env.num_envs, bool)
        while len(ended) < env.num_envs:
            more = {"action_masks": np.stack(env.env_method("action_masks"))} if masked else {}
            actions, state = model.predict(obs, state, starts, deterministic=False, **more)
            obs, _, starts, infos = env.step(actions)
            for row in np.flatnonzero(starts).tolist():
                ended.setdefault(row, infos[row])
    return [ended[row] for row in range(env.num_envs)]


def readable(infos: Sequence[dict[str, Any]], seed: int) -> str:
    """Transcripts, each under a line with its seed, return and success."""
    parts = []
    for row, info in enumerate(infos):
        outcome = f"return {info['episode']['r']:g}"
        if "is_success" in info:
            outcome += ", success" if info["is_success"] else ", no success"
        parts.append(f"# seed {seed + row}: {outcome}\n{info['transcript'].rstrip()}\n")
    return "\n".join(parts)


def _as_code(text: str) -> str:
    """A Markdown code block: TensorBoard would run the lines of a dialogue together."""
    return "".join(f"    {line}\n" for line in text.splitlines())
