"""Policies in the shape of Stable-Baselines3."""
