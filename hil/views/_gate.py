"""Server of the page of a run with its stop button, independent of the 3-D viewer.

The 3-D viewer keeps its buttons in a registry that its clients may change. Therefore the stop
button belongs to this server of the standard library. It has its own port and threads, answers in
plain HTML, and passes STOP to the loop even if the viewer hangs. The viewer is a frame of the page
with another origin, which cannot access the page.

Every request must be addressed to this machine (header Host, against foreign names bound to its
address) and come from the page itself (header Origin, against other open pages).
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hil._concur import LOCAL, REJECTED, admits
from hil.errors import RigError
from hil.views._page import shell

PATIENCE = 5.0
"""Longest duration of one request, s."""

CONNECTIONS = 64
"""Largest number of connections; a further connection ends the oldest one."""


class Gate:
    """Serves the page with the HTML from `words`, and a stop button unless `stop` is None."""

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
                cure="Pass another port with `--dashboard`, or stop the program that uses it.",
            ) from error
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], gate: Gate) -> None:
        self.gate = gate
        self._lock = threading.Lock()
        self._open: dict[int, socket.socket] = {}  # in the order of their start
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection; if there are too many, end the oldest, so that STOP never waits."""
        with self._lock:
            if len(self._open) >= CONNECTIONS:
                oldest = self._open.pop(next(iter(self._open)))
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[id(request)] = request
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Remove a connection that has ended."""
        with self._lock:
            self._open.pop(id(request), None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: browsers may disconnect at any time."""


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE
    server: _Server

    def do_GET(self) -> None:
        gate = self.server.gate
        if not self._admitted():
            return
        if self.path == "/":
            nonce = secrets.token_urlsafe(16)
            # Another site than the page's, so that browsers use a separate process for it.
            other = LOCAL[self.headers["Host"].startswith(LOCAL[0])]
            viewer = f"http://{other}:{gate.viewer}/" if gate.viewer else ""
            text = shell(gate.name, viewer, gate.viewer, gate.stop is not None, nonce)
            policy = (
                f"default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; "
                f"connect-src 'self'; form-action 'self'; frame-src 'self' {viewer}; "
                "frame-ancestors 'self'; base-uri 'none'"
            )
            self._answer(HTTPStatus.OK, text, "text/html", policy)
        elif self.path == "/state":
            self._answer(
                HTTPStatus.OK,
                json.dumps({**gate.words(), "stops": gate.stop is not None, "viewer": gate.viewer}),
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
            self._answer(HTTPStatus.CONFLICT, "This run accepts no operator input.\n")
        elif gate.stop():
            self._answer(HTTPStatus.OK, "STOP was requested.\n")
        else:
            words = "STOP COULD NOT BE SENT. Use the emergency stop.\n"
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, words)

    def _admitted(self) -> bool:
        headers = self.headers
        hosts, origins = headers.get_all("Host", []), headers.get_all("Origin", [])
        if admits(hosts, origins, self.server.gate.names, needs_origin=False):
            return True
        self._answer(HTTPStatus.FORBIDDEN, REJECTED)
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
        """Print nothing, so that the output of the loop stays readable."""
