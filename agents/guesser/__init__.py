"""Guessers of visual dialogue: networks that tell an image's features from the talk about it."""
