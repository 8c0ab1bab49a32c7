"""The viewer is served only if its requests can be checked."""

import pytest
import websockets.asyncio.server

from concur.errors import ConcurError
from concur.show.viewer._server import LOCAL, guarded_sockets


def test_a_viewer_that_cannot_be_guarded_is_not_served():
    serve = websockets.asyncio.server.serve
    with pytest.raises(ConcurError, match="viser"), guarded_sockets(LOCAL):
        pass
    assert websockets.asyncio.server.serve is serve
