"""Algorithms over belief states: values, actor-critics, Gaussian processes, committees, Feudal."""
