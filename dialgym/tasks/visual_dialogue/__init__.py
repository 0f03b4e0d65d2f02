"""Visual dialogue: find a hidden image among many by asking about it."""
