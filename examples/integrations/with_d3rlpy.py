"""d3rlpy: double DQN on acts. It knows no action masks.

``pip install "d3rlpy==2.8.0"`` (2.8.1 pins an older Gymnasium); after its page on online training.
"""

import d3rlpy
import gymnasium as gym
from common import ACTS, chosen_view, mean_return, report

view = chosen_view("act")
d3rlpy.seed(0)
env = gym.make(ACTS)
config = d3rlpy.algos.DoubleDQNConfig(
    batch_size=64, learning_rate=5e-4, target_update_interval=500, gamma=0.99
)
model = config.create(device="cpu")
model.fit_online(
    env,
    d3rlpy.dataset.create_fifo_replay_buffer(limit=50_000, env=env),
    d3rlpy.algos.LinearDecayEpsilonGreedy(duration=8_000, end_epsilon=0.05),
    n_steps=15_000,
    n_steps_per_epoch=10_000,
    update_interval=4,
    update_start_step=1_000,
    logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
    show_progress=False,
)
report(view, mean_return(env, lambda seen, info: int(model.predict(seen[None])[0])))
