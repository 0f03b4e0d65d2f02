"""How fast environments, scripted policies and rewards are: `python -m benchmarks.environments`."""
