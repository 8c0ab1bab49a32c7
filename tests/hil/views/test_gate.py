"""The server of the page: permission to press STOP, and independence of the viewer."""

import http.client
import json
import socket
import threading
import time

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from concur.show.viewer import LOCAL, admits
from hil.errors import RigError
from hil.latch import Reason, State
from hil.views._gate import CONNECTIONS, PATIENCE, Gate
from tests.hil.views.test_dashboard import Station


@pytest.mark.parametrize(
    ("hosts", "origins", "page", "sock"),
    [
        (["127.0.0.1:8080"], [], True, False),  # typed in, or a program
        (["127.0.0.1:8080"], ["http://127.0.0.1:8080"], True, True),
        (["localhost:9000"], ["http://localhost:9000"], True, True),  # through a tunnel
        (["LOCALHOST:8080"], ["http://localhost:8080"], True, True),
        (["[::1]:8080"], ["http://[::1]:8080"], True, True),
        (["localhost"], ["http://localhost"], True, True),
        (["127.0.0.1:8080"], ["http://127.0.0.1:8081"], False, False),  # another port
        (["127.0.0.1:8080"], ["http://localhost:8080"], False, False),
        (["127.0.0.1:8080"], ["https://127.0.0.1:8080"], False, False),
        (["127.0.0.1:8080"], ["http://evil.example"], False, False),
        (["127.0.0.1:8080"], ["http://127.0.0.1:8080.evil.example"], False, False),
        (["127.0.0.1:8080"], ["null"], False, False),
        (["127.0.0.1:8080"], [""], False, False),
        (["evil.example:8080"], [], False, False),  # a name bound to this machine
        (["evil.example:8080"], ["http://evil.example:8080"], False, False),
        (["127.0.0.1.evil.example:8080"], [], False, False),
        (["127.0.0.1:x"], [], False, False),
        (["192.0.2.1:8080"], [], False, False),
        ([], [], False, False),
        ([""], [], False, False),
        (["127.0.0.1:8080", "evil.example"], [], False, False),
        (["127.0.0.1:8080"], ["http://127.0.0.1:8080", "http://evil.example"], False, False),
    ],
)
def test_who_is_admitted(hosts, origins, page, sock):
    assert admits(hosts, origins, LOCAL, needs_origin=False) is page
    assert admits(hosts, origins, LOCAL, needs_origin=True) is sock


@pytest.fixture
def station():
    with Station() as made:
        yield made


def ask(port, method, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())
    finally:
        connection.close()


def test_the_page_and_its_words(station):
    station.write(state=State.RUN)
    station.page.update()
    status, text, headers = ask(station.port, "GET", "/")
    assert status == 200
    # Another site than the page's: browsers use a separate process for it.
    assert f"http://localhost:{station.page.server.get_port()}/" in text
    assert '<form id="hil-stop" method="post" action="/stop"' in text
    assert "frame-ancestors 'self'" in headers["Content-Security-Policy"]
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    status, text, _ = ask(station.port, "GET", "/state")
    words = json.loads(text)
    assert words["stops"] is True
    assert words["viewer"] == station.page.server.get_port()
    assert "RUN" in words["card"]
    assert ask(station.port, "GET", "/../etc/passwd")[0] == 404
    assert ask(station.port, "POST", "/state")[0] == 404


def test_stop_is_a_plain_form(station):
    origin = f"http://127.0.0.1:{station.port}"
    status, text, _ = ask(station.port, "POST", "/stop", Origin=origin)
    assert (status, text) == (200, "STOP was requested.\n")
    assert station.channel.poll() is Reason.OPERATOR


def test_a_program_of_this_machine_may_press_it(station):
    assert ask(station.port, "POST", "/stop")[0] == 200
    assert station.channel.poll() is Reason.OPERATOR


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example:80"}],
)
@pytest.mark.parametrize(("method", "path"), [("POST", "/stop"), ("GET", "/"), ("GET", "/state")])
def test_pages_from_elsewhere_are_refused(station, method, path, headers):
    status, text, _ = ask(station.port, method, path, **headers)
    assert status == 403
    assert station.rig.name not in text
    assert station.channel.poll() is not Reason.OPERATOR


def test_a_stop_that_cannot_be_sent_is_reported(station):
    station.page.sender.close()
    status, text, _ = ask(station.port, "POST", "/stop")
    assert status == 503
    assert "Use the emergency stop" in text


def test_after_the_session_nothing_is_promised(station):
    station.page.say_goodbye()
    assert ask(station.port, "POST", "/stop")[0] == 409
    assert json.loads(ask(station.port, "GET", "/state")[1])["stops"] is False


def test_the_button_is_not_in_the_registry_of_the_viewer(station):
    """Removing all elements of the viewer does not remove STOP."""
    gui = station.page.server.gui
    for handle in list(gui._gui_input_handle_from_uuid.values()):
        assert "STOP" not in str(getattr(handle, "label", ""))
    gui.reset()
    station.page.server.stop()  # the viewer is dead altogether
    assert ask(station.port, "POST", "/stop")[0] == 200
    assert station.channel.poll() is Reason.OPERATOR


def test_stop_needs_nothing_of_the_thread_that_draws(station, monkeypatch):
    """It hangs in the viewer, for ever."""
    hangs, ended = threading.Event(), threading.Event()
    monkeypatch.setattr(station.page, "draw", lambda: (hangs.set(), ended.wait(30.0)))
    thread = threading.Thread(target=station.page.run, args=(ended,))
    thread.start()
    try:
        assert hangs.wait(20.0)
        assert ask(station.port, "POST", "/stop")[0] == 200
        assert station.channel.poll() is Reason.OPERATOR
    finally:
        ended.set()
        thread.join()


# -- the viewer --------------------------------------------------------------------------------


def viewer(station, **headers):
    """Open a socket to the viewer as its client does."""
    import viser

    return connect(
        f"ws://127.0.0.1:{station.page.server.get_port()}",
        subprotocols=[f"viser-v{viser.__version__}"],
        additional_headers=headers,
        max_size=None,
    )


def test_the_viewers_own_page_is_admitted(station):
    port = station.page.server.get_port()
    assert ask(port, "GET", "/")[0] == 200
    with viewer(station, Origin=f"http://127.0.0.1:{port}") as client:
        assert client.recv(timeout=10)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "own page", None])
def test_sockets_of_other_pages_are_refused(station, origin):
    if origin == "own page":  # another origin, too: it has no business in there
        origin = f"http://127.0.0.1:{station.port}"
    headers = {} if origin is None else {"Origin": origin}
    with pytest.raises(InvalidStatus) as caught, viewer(station, **headers):
        pass
    assert caught.value.response.status_code == 403


def test_a_name_bound_to_this_machine_is_refused(station):
    port = station.page.server.get_port()
    assert ask(port, "GET", "/", Host=f"evil.example:{port}")[0] == 403


def test_a_port_that_is_taken_is_refused(station):
    with pytest.raises(RigError, match="free port"):
        Gate("rig", "127.0.0.1", station.port, dict, None)


def serving() -> int:
    """Threads that serve a connection."""
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())


def test_silent_connections_do_not_delay_stop(station):
    """Three times `CONNECTIONS` of them; each sends the start of a request, and no more."""
    idle = []
    try:
        for k in range(3 * CONNECTIONS):
            one = socket.create_connection(("127.0.0.1", station.port), timeout=5)
            one.sendall(b"POST /stop HTTP/1.1\r\nX: ")
            idle.append(one)
            if k % CONNECTIONS == CONNECTIONS - 1:
                before = time.monotonic()
                status, _, _ = ask(station.port, "POST", "/stop")
                assert status == 200
                assert time.monotonic() - before < PATIENCE / 2
        until = time.monotonic() + 5.0  # threads whose connections are closed end soon
        while serving() > CONNECTIONS and time.monotonic() < until:
            time.sleep(0.01)
        assert serving() <= CONNECTIONS
        newest = idle[-1]  # is still served
        newest.sendall(f"y\r\nHost: 127.0.0.1:{station.port}\r\n\r\n".encode())
        assert newest.recv(100).startswith(b"HTTP/1.0 200")
        oldest = idle[0]
        assert oldest.recv(100) == b""
    finally:
        for one in idle:
            one.close()


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
@pytest.mark.parametrize(("host", "status"), [(True, b"200"), (False, b"403")])
def test_stop_of_old_browsers(station, version, host, status):
    line = f"Host: 127.0.0.1:{station.port}\r\n" if host else ""
    with socket.create_connection(("127.0.0.1", station.port), timeout=5) as one:
        one.sendall(f"POST /stop {version}\r\n{line}\r\n".encode())
        assert one.recv(100).split()[1] == status
