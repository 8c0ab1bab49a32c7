"""The page of a run, with its stop button, on a server that shares nothing with the viewer.

The 3-D viewer keeps its buttons in a registry that its clients may change. So the stop button is
not one of its: this server of the standard library has a port and threads of its own, answers in
plain HTML, and hands STOP to the loop although the viewer hangs. The viewer is a frame of the page,
of another origin, which cannot reach out of it.

Whatever a browser sends must be meant for this machine (Host, against names that are bound to it
from outside) and come from the page itself (Origin, against other pages that are open).
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hil.errors import RigError
from hil.views._page import shell

LOCAL = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine for itself."""

PATIENCE = 5.0
"""Time that a browser may take for one request, s."""

CONNECTIONS = 64
"""Connections at a time: a further one ends the oldest, which has had its time."""

_NOT_FOR_US = "This page is for this machine and comes from itself only.\n"


def admits(
    hosts: Sequence[str], origins: Sequence[str], names: Sequence[str], needs_origin: bool
) -> bool:
    """Whether a request of a browser is meant for this server, and made by its own page.

    Host and Origin are given as often as they were sent. An Origin is needed for sockets, which
    pages of all origins may open.
    """
    if len(hosts) != 1 or len(origins) > 1:
        return False
    host = hosts[0].strip().lower()
    name, _, port = host.rpartition(":")
    if not (name and port.isascii() and port.isdigit()):
        name = host  # of port 80
    if name not in names:
        return False
    if not origins:
        return not needs_origin
    return origins[0].strip().lower() == f"http://{host}"


class Gate:
    """Serves the page, HTML by place that `words` gives, and the stop button; None: no button."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        words: Callable[[], Mapping[str, str]],
        stop: Callable[[], bool] | None,
    ) -> None:
        self.name, self.words, self.stop = name, words, stop
        self.viewer = 0  # port of the viewer, once it listens
        self.names = (*LOCAL, host.lower())
        try:
            self._server = _Server((host, port), self)
        except (OSError, OverflowError) as error:
            raise RigError(
                f"dashboard at {host}:{port}",
                expected="a free port of this machine",
                came=f"{error}",
                cure="Give another with `--dashboard`, or close what uses it.",
            ) from error
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], gate: Gate) -> None:
        self.gate = gate
        self._lock = threading.Lock()
        self._open: dict[int, socket.socket] = {}  # the oldest first
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection; the oldest one ends if there are too many, or STOP would wait."""
        with self._lock:
            if len(self._open) >= CONNECTIONS:
                oldest = self._open.pop(next(iter(self._open)))
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[id(request)] = request
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that has ended."""
        with self._lock:
            self._open.pop(id(request), None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE
    server: _Server

    def do_GET(self) -> None:
        gate = self.server.gate
        if not self._admitted():
            return
        if self.path == "/":
            nonce = secrets.token_urlsafe(16)
            # Of another site than the page, so that browsers give it a process of its own.
            other = LOCAL[self.headers["Host"].startswith(LOCAL[0])]
            viewer = f"http://{other}:{gate.viewer}/" if gate.viewer else ""
            text = shell(gate.name, viewer, gate.stop is not None, nonce)
            policy = (
                f"default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; "
                f"connect-src 'self'; form-action 'self'; frame-src 'self' {viewer}; "
                "frame-ancestors 'self'; base-uri 'none'"
            )
            self._answer(HTTPStatus.OK, text, "text/html", policy)
        elif self.path == "/state":
            self._answer(
                HTTPStatus.OK,
                json.dumps({**gate.words(), "stops": gate.stop is not None}),
                "application/json",
            )
        else:
            self._answer(HTTPStatus.NOT_FOUND, "Nothing here.\n")

    def do_POST(self) -> None:
        gate = self.server.gate
        if not self._admitted():
            return
        if self.path != "/stop":
            self._answer(HTTPStatus.NOT_FOUND, "Nothing here.\n")
        elif gate.stop is None:
            self._answer(HTTPStatus.CONFLICT, "This run listens to nobody.\n")
        elif gate.stop():
            self._answer(HTTPStatus.OK, "STOP has been asked for.\n")
        else:
            words = "STOP COULD NOT BE SENT. Use the emergency stop.\n"
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, words)

    def _admitted(self) -> bool:
        headers = self.headers
        hosts, origins = headers.get_all("Host", []), headers.get_all("Origin", [])
        if admits(hosts, origins, self.server.gate.names, needs_origin=False):
            return True
        self._answer(HTTPStatus.FORBIDDEN, _NOT_FOR_US)
        return False

    def _answer(
        self, status: HTTPStatus, text: str, kind: str = "text/plain", policy: str = ""
    ) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        if policy:
            self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """No word in between what the loop prints."""


@contextmanager
def guarded_sockets(names: Sequence[str]) -> Iterator[None]:
    """Let servers of `websockets` that are started meanwhile admit their own pages only."""
    import websockets.asyncio.server as library

    inner, started = library.serve, []

    def serve(*arguments: Any, process_request: Any = None, **options: Any) -> Any:
        started.append(True)

        def guard(connection: Any, request: Any) -> Any:
            headers = request.headers
            hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
            if not admits(hosts, origins, names, bool(headers.get_all("Upgrade"))):
                return connection.respond(HTTPStatus.FORBIDDEN, _NOT_FOR_US)
            return process_request(connection, request) if process_request else None

        return inner(*arguments, process_request=guard, **options)

    library.serve = serve  # type: ignore[assignment,misc]
    try:
        yield
    finally:
        library.serve = inner  # type: ignore[misc]
    if not started:
        raise RigError(
            "viewer of the dashboard",
            expected="a server of `websockets` whose requests can be judged",
            came="none: this version of `viser` has another",
            cure="Install a version of `viser` that this one of concur was tested with.",
        )
