"""Every example runs, as a user would run it, and says what it should."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import HANG_GUARD

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
NEEDS = {
    "04_sb3_ppo": "stable_baselines3",
    "05_sb3_contrib": "sb3_contrib",
    "06_gpt_ppo": "stable_baselines3",
    "07_rl_zoo3": "rl_zoo3",
    "08_cleanrl_ppo": "torch",
    "11_sequence_ppo": "stable_baselines3",
    "12_grpo": "stable_baselines3",
    "13_offline": "stable_baselines3",
    "14_slot_filling": "sb3_contrib",
    "15_chat": "stable_baselines3",
    "16_reward_model": "stable_baselines3",
    "17_own_algorithm": "stable_baselines3",
    "18_multi_domain": "stable_baselines3",
    "19_several_domains": "stable_baselines3",
}
SAYS = {
    "01_minimal_loop": "return ",
    "02_utterances": "abide -> g g g g g",
    "03_batches": "observations (1024, 108)",
    "04_sb3_ppo": "mean return 1",
    "05_sb3_contrib": "RecurrentPPO: 1728 acts",
    "06_gpt_ppo": "Wordle-20-v0",
    "07_rl_zoo3": "Saving to",
    "08_cleanrl_ppo": "update 3: mean return",
    "09_pettingzoo": "{'system': -",
    "10_own_task": "| HigherLower-v0 | bisect | -4.",
    "11_sequence_ppo": "PPO: mean return",
    "12_grpo": "iteration 72: mean return",
    "13_offline": "ILQL  mean return -0.",
    "14_slot_filling": "handcrafted: 1",
    "15_chat": "who has the clone as its user: mean return",
    "16_reward_model": "When do we meet? -> meteor",
    "17_own_algorithm": "return at random ",
    "18_multi_domain": "rule: success 1.00",
    "19_several_domains": "'success_CamRestaurants': 1.0, 'success_SFRestaurants': 1.0",
}


QUICK = {
    "01_minimal_loop",
    "02_utterances",
    "03_batches",
    "09_pettingzoo",
}
"""The examples that train little or nothing; the others run in `make nightly`."""


def of_example(path: Path):
    marks = () if path.stem in QUICK else pytest.mark.slow
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", map(of_example, EXAMPLES))
def test_example(path, tmp_path):
    needed = NEEDS.get(path.stem)
    if needed and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    run = subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, text=True, timeout=HANG_GUARD
    )
    assert run.returncode == 0, run.stderr
    assert SAYS[path.stem] in run.stdout


def test_every_example_is_expected_to_say_something():
    assert {path.stem for path in EXAMPLES} == set(SAYS)
