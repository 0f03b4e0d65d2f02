"""Learning while talking: GPT policies for Stable-Baselines3, and PPO and GRPO over dialogues."""
