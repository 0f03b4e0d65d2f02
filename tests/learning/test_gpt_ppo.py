"""PPO with a GPT learns to use what it is told: seconds on one core, fails if learning breaks."""

from stable_baselines3.common.evaluation import evaluate_policy

import dialgym
from agents import train

# Told apart completely by the colours of `fjord`. Three guesses: -1.73 at random, -1.5 without a
# look at the colours and without repetition, -0.75 at best.
WORDS = {"answers": ["crane", "slimy", "bough", "fjord"], "guesses": "answers"}
GAME = {**WORDS, "constraint": "words", "turns": 3}
QUICK = {"n_steps": 36, "batch_size": 576, "learning_rate": "lin_0.003"}


def test_ppo_learns_to_use_the_colours(tmp_path):
    model = train(
        "ppo",
        "dialgym/Wordle-v0",
        total_timesteps=100_000,
        n_envs=64,
        log_dir=tmp_path,
        overrides=QUICK,
        device="cpu",
        progress_bar=False,
        env_kwargs=GAME,
        threads=1,
    )
    env = dialgym.sb3_vec_env("dialgym/Wordle-v0", 50, seed=7, **GAME)
    mean, _ = evaluate_policy(model, env, n_eval_episodes=500, warn=False)
    assert mean > -1.1
