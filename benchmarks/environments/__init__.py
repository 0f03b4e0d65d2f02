"""Speed of environments, scripted policies and rewards: `python -m benchmarks.environments`."""
