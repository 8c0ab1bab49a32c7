"""Server of a viewer: viser, quiet, which accepts only requests of the page that it serves.

Every request must be addressed to this machine (header Host, against foreign names bound to its
address) and come from the page itself (header Origin, against other open pages).
"""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from concur.errors import ConcurError

if TYPE_CHECKING:
    import viser

LOCAL = ("127.0.0.1", "localhost", "[::1]")
"""Local names of this machine."""

REJECTED = "This page accepts requests only from itself, on this machine.\n"
"""Answer to a request that `admits` rejects."""


def start_server(host: str, port: int, label: str) -> viser.ViserServer:
    """Start a viewer without a scene; port 0: any free port."""
    import viser

    try:
        with socket.socket() as probe:  # viser would take the next free port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError) as error:
        raise ConcurError(
            f"the viewer at {host}:{port}",
            expected="a free port of this machine, from 0 to 65535",
            came=f"{error}",
            cure="Pass another port, or stop the program that uses it; 0 is any free port.",
        ) from None
    with silenced(), guarded_sockets((*LOCAL, host.lower())):
        return viser.ViserServer(host=host, port=port, label=label, verbose=False)


def silenced() -> redirect_stdout[io.StringIO]:
    """Discard the output of the server: other output on the same terminal may be JSON."""
    return redirect_stdout(io.StringIO())


def admits(
    hosts: Sequence[str], origins: Sequence[str], names: Sequence[str], needs_origin: bool
) -> bool:
    """Whether a request is addressed to this server and made by its own page.

    `hosts` and `origins` are all values of the headers Host and Origin. An origin is required for
    sockets, which pages of all origins may open.
    """
    if len(hosts) != 1 or len(origins) > 1:
        return False
    host = hosts[0].strip().lower()
    name, _, port = host.rpartition(":")
    if not (name and port.isascii() and port.isdigit()):
        name = host  # port 80 is omitted
    if name not in names:
        return False
    if not origins:
        return not needs_origin
    return origins[0].strip().lower() == f"http://{host}"


@contextmanager
def guarded_sockets(names: Sequence[str]) -> Iterator[None]:
    """Make servers of `websockets` that are started in this context admit only their own pages."""
    import websockets.asyncio.server as library

    inner, started = library.serve, []

    def serve(*arguments: Any, process_request: Any = None, **options: Any) -> Any:
        started.append(True)

        def guard(connection: Any, request: Any) -> Any:
            headers = request.headers
            hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
            if not admits(hosts, origins, names, bool(headers.get_all("Upgrade"))):
                return connection.respond(HTTPStatus.FORBIDDEN, REJECTED)
            return process_request(connection, request) if process_request else None

        return inner(*arguments, process_request=guard, **options)

    library.serve = serve  # type: ignore[assignment,misc]
    try:
        yield
    finally:
        library.serve = inner  # type: ignore[misc]
    if not started:
        raise ConcurError(
            "the viewer",
            expected="a server of the package `websockets`, whose requests can be checked",
            came="another server, in this version of `viser`",
            cure="Install a version of `viser` with which this version of concur was tested.",
        )
