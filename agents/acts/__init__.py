"""Learners over dialogue acts: policy gradients, actor-critics, Q-learning, GPs, feudal."""
