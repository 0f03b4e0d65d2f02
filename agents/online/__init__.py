"""Learning while talking: GPT policies for Stable-Baselines3, and training by configuration."""
