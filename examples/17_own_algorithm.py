"""Your own algorithm: registered, then trained, saved and loaded by its name.

REINFORCE with a baseline (Williams 1992), on any algorithm of Stable-Baselines3. In a module of the
current folder it also trains at the command line: ``dialgym train my_module:Reinforce ID``.
"""

import tempfile
from pathlib import Path

from stable_baselines3 import A2C
from torch.nn.functional import mse_loss

import agents
import dialgym


class Reinforce(A2C):
    """Gradient of E[(R - V(s)) log pi(a|s)]; R are the returns as they were earned."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{"gae_lambda": 1.0, **kwargs})

    def loss(self, batch):
        """The loss of a rollout, a scalar."""
        actions = batch.actions.long().flatten()
        values, log_prob, entropy = self.policy.evaluate_actions(batch.observations, actions)
        baseline = values.flatten()
        advantages = batch.returns - baseline.detach()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        policy_loss = -(advantages * log_prob).mean()
        value_loss = mse_loss(baseline, batch.returns)
        self.logger.record("train/policy_loss", policy_loss.item())
        return policy_loss + self.vf_coef * value_loss - self.ent_coef * entropy.mean()

    def train(self):
        """One step on the last rollout."""
        self.policy.set_training_mode(True)
        for batch in self.rollout_buffer.get(batch_size=None):
            self.policy.optimizer.zero_grad()
            self.loss(batch).backward()
            self.policy.optimizer.step()


agents.register(
    "reinforce",
    Reinforce,
    kind="acts",
    config={
        "default": {
            "n_timesteps": 24_000,
            "n_envs": 16,
            "n_steps": 16,
            "learning_rate": 0.003,
            "ent_coef": 0.01,
            "policy_kwargs": {"net_arch": [64]},
        }
    },
)

if __name__ == "__main__":
    ID = "dialgym/SlotFilling-act-v0"
    with tempfile.TemporaryDirectory() as folder:
        agents.train(ID, "reinforce", log_dir=folder, seed=0, progress_bar=False)
        trained = agents.load(Path(folder) / "model.zip")
    assert type(trained) is Reinforce
    random = dialgym.evaluate("random", ID, episodes=100)
    learned = dialgym.evaluate(trained, ID, episodes=100)
    print(f"return at random {random.mean_return:.2f}, learned {learned.mean_return:.2f}")
    assert learned.mean_return > random.mean_return + 2
