"""Sample Factory: APPO on acts. It knows no action masks for a plain `Discrete`.

``pip install sample-factory --no-deps`` beside Gymnasium 1 (its own pin is 0.29, which dialgym does
not run on) and NumPy below 2.4; after its sf_examples/train_gym_env.py.
"""

import tempfile

import gymnasium as gym
import numpy as np
import torch
from common import ACTS, chosen_view, mean_return, report
from sample_factory.algo.learning.learner import Learner
from sample_factory.algo.utils.make_env import make_env_func_batched
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.model.actor_critic import create_actor_critic
from sample_factory.train import run_rl
from sample_factory.utils.attr_dict import AttrDict

ARGUMENTS = [
    *("--algo=APPO", f"--env={ACTS}", "--experiment=acts"),
    *("--device=cpu", "--serial_mode=True", "--async_rl=False", "--use_rnn=False"),
    *("--num_workers=1", "--num_envs_per_worker=16", "--worker_num_splits=1"),
    *("--rollout=32", "--batch_size=512", "--num_epochs=4", "--recurrence=1"),
    *("--learning_rate=1e-3", "--reward_scale=0.1", "--train_for_env_steps=50000"),
    *("--seed=0", "--with_vtrace=False", "--encoder_mlp_layers", "64", "64"),
]


def make(name, cfg=None, env_config=None, render_mode=None) -> gym.Env:
    return gym.make(name)


def learn(folder: str):
    arguments = [*ARGUMENTS, f"--train_dir={folder}"]
    parser, _ = parse_sf_args(arguments)
    config = parse_full_cfg(parser, arguments)
    run_rl(config)
    place = AttrDict(worker_index=0, vector_index=0, env_id=0)
    env = make_env_func_batched(config, env_config=place)
    model = create_actor_critic(config, env.observation_space, env.action_space)
    paths = Learner.get_checkpoints(Learner.checkpoint_dir(config, 0), "checkpoint_*")
    model.load_state_dict(torch.load(paths[-1], weights_only=False)["model"])
    return model.eval()


def main() -> None:
    view = chosen_view("act")
    register_env(ACTS, make)
    with tempfile.TemporaryDirectory() as folder:
        model = learn(folder)

    def act(observation, info) -> int:
        with torch.no_grad():
            seen = {"obs": torch.as_tensor(np.asarray(observation, np.float32))[None]}
            seen = model.normalize_obs(seen)
            return int(model(seen, torch.zeros(1, 1))["action_logits"].argmax())

    report(view, mean_return(gym.make(ACTS), act))


if __name__ == "__main__":
    main()
