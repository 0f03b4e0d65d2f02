"""Policies by Gaussian processes over beliefs: GP-SARSA, and committees of several domains."""
