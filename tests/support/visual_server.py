"""A server of visual dialogue in a thread of the test's own process."""

from collections.abc import Iterator
from contextlib import contextmanager

from dialgym.io.http_server import listening
from dialgym.tasks.visual_dialogue.server import make_app
from dialgym.tasks.visual_dialogue.serving import Bots
from tests.support.app_server import app_server


@contextmanager
def visual_server(bots: Bots, port: int = 0, **settings) -> Iterator[str]:
    """Its URL; it is ended after."""
    with app_server(make_app(bots, **settings), listening("serve visual", port=port)) as url:
        yield url
