"""A server of visual dialogue in a thread of the test's own process."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dialgym.io.http_server import listening
from dialgym.tasks.visual_dialogue.server import make_app
from dialgym.tasks.visual_dialogue.serving import Bots


@contextmanager
def visual_server(bots: Bots, port: int = 0, **settings) -> Iterator[str]:
    """Its URL; it is ended after."""
    import uvicorn

    listener = listening("serve visual", port=port)
    config = uvicorn.Config(make_app(bots, **settings), log_level="error", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server has not come up"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)
        listener.close()
