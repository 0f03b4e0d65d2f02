"""PPO, NLPO and GRPO learn to use what they are told."""

import pytest
from stable_baselines3.common.evaluation import evaluate_policy

import dialgym
from agents import train

# Told apart completely by the colours of `fjord`. Three guesses: -1.73 at random, -1.5 without a
# look at the colours and without repetition, -0.75 at best.
WORDS = {"answers": ["crane", "slimy", "bough", "fjord"], "guesses": "answers"}
GAME = {**WORDS, "constraint": "words", "turns": 3}
SMALL = {"n_steps": 36, "batch_size": 576, "policy_kwargs": {"preset": "nano", "n_layer": 1}}
SMALL["policy_kwargs"] |= {"n_head": 2, "n_embd": 32}
QUICK = {
    "ppo": (60_000, 64, {**SMALL, "learning_rate": "lin_0.005"}),
    "nlpo": (60_000, 64, {**SMALL, "learning_rate": "lin_0.005", "mask_every": 10}),
    "grpo": (
        200_000,
        256,
        {
            "batch_size": 512,
            "learning_rate": "lin_0.001",
            "ent_coef": 0.05,
            "scale_rewards": "none",
        },
    ),
}


@pytest.mark.parametrize(
    "algo", ["ppo", *[pytest.param(algo, marks=pytest.mark.slow) for algo in ("nlpo", "grpo")]]
)
@pytest.mark.slow
def test_learns_to_use_the_colours(algo, tmp_path):
    timesteps, n_envs, overrides = QUICK[algo]
    model = train(
        "dialgym/Wordle-v0",
        algo,
        total_timesteps=timesteps,
        n_envs=n_envs,
        log_dir=tmp_path,
        hyperparameters=overrides,
        device="cpu",
        progress_bar=False,
        env_kwargs=GAME,
        threads=1,
    )
    env = dialgym.sb3_vec_env("dialgym/Wordle-v0", 50, seed=7, **GAME)
    mean, _ = evaluate_policy(model, env, n_eval_episodes=500, warn=False)
    assert mean > -1.2


@pytest.mark.slow
def test_learns_to_ask_and_to_guess(tmp_path):
    """-6.0 at random, -3.4 by guesses alone that never repeat, -2.5 at best."""
    env_id = "dialgym/TwentyQuestions-8-v0"
    options = {"log_dir": tmp_path, "device": "cpu", "progress_bar": False, "threads": 1}
    model = train(env_id, "ppo", total_timesteps=150_000, n_envs=128, **options)
    env = dialgym.sb3_vec_env(env_id, 50, seed=7)
    mean, _ = evaluate_policy(model, env, n_eval_episodes=500, warn=False)
    assert mean > -4.5
