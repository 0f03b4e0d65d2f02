"""Mazes: find the goal by commands, told one's position or walls alone."""

from dialgym.tasks.maze.task import Maze
from dialgym.tasks.worlds import WorldState

__all__ = ["Maze", "WorldState"]
