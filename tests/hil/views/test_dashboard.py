"""The dashboard: its view of a ring, its stop button, and the page in a browser."""

import contextlib
import os
import re
import signal
import threading
import time

import numpy as np
import pytest

import hil.views.dashboard
from hil.clock import MonotonicClock
from hil.controller import Mode
from hil.errors import RigError
from hil.guard import Flag
from hil.latch import Reason, State
from hil.operator import OperatorChannel, OperatorSender
from hil.record.ring import Ring
from hil.record.rows import Layout
from hil.rig import OperatorSettings
from hil.views.dashboard import Dashboard, start_dashboard
from tests.hil.bench import EXAMPLES, ROVER, Bench, rig_of
from tests.ports import free_port

RIG = EXAMPLES / ROVER


class Station:
    """A ring that the test writes, a channel that it polls, and a dashboard between them."""

    def __init__(self, rows=200, listens=True, port=None, **others):
        self.rig = rig_of()
        task = self.rig.task
        size, dim = (sum(o.pose_size for o in task.outputs), sum(o.dim for o in task.outputs))
        axes = tuple(axis.name for axis in self.rig.axes)
        self.layout = Layout(axes, task.robot.nq, 2, size, dim)
        self.closing = contextlib.ExitStack()
        own = self.closing.enter_context
        self.ring = own(Ring.create(self.layout, rows))
        settings = OperatorSettings("127.0.0.1", 0, 0.3)
        self.channel = own(OperatorChannel(settings, MonotonicClock(), token="secret"))
        sender = None
        if listens:
            sender = own(OperatorSender("127.0.0.1", self.channel.port))
        self.port = port or free_port()
        self.page = Dashboard(
            self.rig, own(Ring.attach(self.ring.name)), sender, port=self.port, **others
        )
        self.closing.callback(self.page.close)
        self.cycles = 0

    def write(self, count=1, **values):
        for _ in range(count):
            row = self.layout.views(self.ring.row)
            self.ring.row[:] = 0.0
            row["q"][:] = self.rig.task.q0
            row["enabled"][:] = 1.0
            row["pose"][:] = row["pose_age"][:] = np.nan
            row["cycle"][:], row["time"][:] = self.cycles, 0.004 * self.cycles
            row["deadline"][:] = row["time"]
            for name, value in values.items():
                row[name][:] = value
            self.ring.publish()
            self.cycles += 1

    @property
    def words(self):
        return "\n".join(self.page.words.values())

    def cells(self, axis):
        line = re.search(f'<tr data-axis="{axis}">(.*?)</tr>', self.words)[1]
        return re.findall("<td[^>]*>(.*?)</td>", line)

    def word(self, name):
        return re.search(f'<tr data-name="{name}">.*?</td><td>(.*?)</td>', self.words)[1]

    def title(self):
        return re.search('<h2 id="hil-state">(.*?)</h2>', self.words)[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing.close()


@pytest.fixture
def station():
    with Station() as made:
        yield made


def test_nothing_is_printed_into_the_output_of_the_loop(capsys):
    with Station() as station:
        station.page.update()
    assert capsys.readouterr().out == ""


def test_before_the_first_cycle(station):
    assert not station.page.update()
    assert station.title() == "NOT ARMED YET"
    assert "being prepared" in station.words


def test_what_stands_in_the_last_row_is_shown(station):
    station.page.draw()
    station.write(300, state=State.ARMED)
    torque = np.array([1.5, -2.25, 3.125, 11.75, 0.5])
    station.write(
        state=State.RUN,
        elapsed=1.25,
        torque=torque,
        position=torque / 2,
        enabled=[1, 1, 0, 1, 1],
        fault=[0, 0, 0, 0, 0x8611],
        late=7,
        lost=8,
        clipped=10,
        compute=321e-6,
        flags=Flag.CLIPPED_TORQUE | Flag.NEAR_END,
        pose_age=0.0125,
    )
    assert station.page.update()
    assert station.title() == "RUN"
    assert State.RUN.sentence[1:] in station.words
    assert f"1.2 s of {station.rig.task.duration:.1f} s" in station.words
    for k, axis in enumerate(station.rig.axes):
        name, position, sent, share, drive = station.cells(axis.name)
        assert name == axis.name
        assert float(position) == pytest.approx(torque[k] / 2, abs=5e-4)
        assert float(sent) == pytest.approx(torque[k], abs=5e-4)
        percent = 100 * abs(torque[k]) / axis.torque_limit
        assert float(share.partition(" ")[0]) == pytest.approx(percent, abs=0.51)
        expected = {2: "off", 4: '<span class="hil-bad">fault 0x8611</span>'}.get(k, "on")
        assert drive == expected
    for name, value in (
        ("cycles", "300"),
        ("late cycles", "7"),
        ("missing reports", "8"),
        ("limited cycles", "10"),
        ("guard, last second", "clipped torque, near end"),
        ("age of the external pose", "12.5 ms"),
    ):
        assert station.word(name) == value
    assert station.word("computing, last second") == "0, at most 321 µs"
    assert not station.page.update()  # nothing new


def test_curves_are_those_of_the_rows(station):
    # More than a second, so that rows are thinned; the axis counts back from now.
    for _ in range(3):
        station.write(100, state=State.RUN)
        station.page.update()
    error = np.linspace(1e-3, 5e-3, station.layout.size)
    station.write(torque=[1, 2, 3, 4, 5], error=error, compute=1e-3)
    station.page.update()
    times, *torques = station.page._torques.data
    assert times[-1] == 0.0
    assert -2.0 < times[0] < -1.0
    assert (np.diff(times) > 0.0).all()
    assert [curve[-1] for curve in torques] == [1, 2, 3, 4, 5]
    assert not any(curve[:-1].any() for curve in torques)
    np.testing.assert_allclose([c[-1] for c in station.page._errors.data[1:]], 1e3 * error)
    assert station.page._cycles.data[2][-1] == pytest.approx(1e3)


def test_one_slow_cycle_is_seen_though_curves_are_thinned(station):
    station.write(53)
    station.write(compute=2.5e-3)
    station.write(53)
    station.page.update()
    assert len(station.page._cycles.data[0]) < 20
    assert station.page._cycles.data[2].max() == pytest.approx(2500.0)


def test_rows_of_nonsense_are_shown_as_that(station):
    station.page.draw()
    station.write(30, state=State.RUN)
    for value in (np.nan, np.inf, -np.inf, -1.0, 1e300):
        station.ring.row[:] = value
        station.ring.publish()
        assert station.page.update()
        assert station.title() == "STATE UNKNOWN"
        for plot in (station.page._errors, station.page._torques, station.page._cycles):
            assert not np.isinf(np.concatenate(plot.data)).any()
    station.write(state=State.RUN)
    assert station.page.update()
    assert station.title() == "RUN"


def test_a_ring_that_was_overwritten(station):
    station.write(20)
    station.page.update()
    station.write(1000, state=State.RUN, torque=[1, 2, 3, 4, 5])
    assert station.page.update()
    assert station.word("cycles") == "1019"
    times, *torques = station.page._torques.data
    assert (np.diff(times) > 0.0).all()
    assert times[0] >= -0.004 * station.ring.rows  # no line across a gap
    assert all((curve == k).all() for k, curve in enumerate(torques, 1))


def test_the_card_shows_the_reason_of_a_stop(station):
    for reason in (reason for reason in Reason if reason):
        station.write(state=State.STOP, reason=reason, elapsed=np.nan)
        station.page.update()
        assert station.title() == ("STOP: task done" if reason is Reason.END else "STOP")
        assert f"<b>{reason.name}</b>: {reason.sentence}." in station.words


def test_a_loop_that_hangs_is_reported(station, monkeypatch):
    station.write(state=State.RUN)
    station.page.update()
    assert "No new cycle" not in station.words
    later = time.monotonic() + 5.0
    monkeypatch.setattr(hil.views.dashboard.time, "monotonic", lambda: later)
    station.page.update()
    assert re.search(r"No new cycle for \d+\.\d s", station.words)


def test_each_card_is_another_or_the_page_would_call_itself_frozen(station):
    cards = set()
    for _ in range(3):
        station.page.update()
        cards.add(station.page.words["card"])
    assert len(cards) == 3
    assert all('class="hil-old"' in card for card in cards)


def test_stop_before_and_after_the_run_began(station):
    assert station.page.stop()
    assert station.channel.poll() is Reason.OPERATOR
    station.page.update()
    assert "was requested" in station.words
    # The request is repeated until the loop reports its stop.
    before = station.channel.received
    station.write(state=State.RUN)
    station.page.update()
    station.channel.poll()
    assert station.channel.received > before
    station.write(state=State.STOP, reason=Reason.OPERATOR)
    station.page.update()
    station.channel.poll()
    before = station.channel.received
    station.page.update()
    station.channel.poll()
    assert station.channel.received == before
    assert "requested" not in station.page.words["answer"]


def test_a_stop_that_is_not_followed_is_reported(station, monkeypatch):
    station.write(state=State.RUN)
    station.page.stop()
    later = time.monotonic() + 5.0
    monkeypatch.setattr(hil.views.dashboard.time, "monotonic", lambda: later)
    station.page.update()
    assert "has not stopped. Use the emergency stop" in station.words.replace("  ", " ")


def test_what_cannot_be_shown_does_not_take_the_button_away(station, monkeypatch):
    def fail(*_):
        raise RuntimeError("no <picture>")

    monkeypatch.setattr(station.page, "draw", fail)
    monkeypatch.setattr(station.page, "_show_curves", fail)
    station.write(state=State.RUN)
    ended = threading.Event()
    thread = threading.Thread(target=station.page.run, args=(ended,))
    thread.start()
    try:
        end = time.monotonic() + 20.0
        while "no &lt;picture&gt;" not in station.words and time.monotonic() < end:
            time.sleep(0.01)
        assert "RuntimeError: no &lt;picture&gt;" in station.words
        assert station.title() == "RUN"
        station.page.stop()
        assert station.channel.poll() is Reason.OPERATOR
        assert thread.is_alive()
    finally:
        ended.set()
        thread.join()


def test_a_run_without_operator_input():
    with Station(listens=False) as station:
        station.page.update()
        assert station.page.gate.stop is None
        assert not station.page.stop()
        assert "accepts no operator input" in station.words


def test_the_end_is_reported():
    with Station(duration=7.0) as station:
        station.write(state=State.RUN, elapsed=6.0)
        station.page.update()
        assert "6.0 s of 7.0 s" in station.words
        station.write(state=State.STOP, reason=Reason.END)
        station.page.say_goodbye()
        assert station.title() == "STOP: task done"
        assert "The session has ended" in station.words
        assert "hil-old" not in station.words  # this card may stay
        assert station.page.gate.stop is None


def test_a_port_that_is_taken():
    with Station() as station, pytest.raises(RigError, match="free port"):
        start_dashboard(RIG, station.ring.name, 1, port=station.port)


# -- in a browser ------------------------------------------------------------------------------


class Driven:
    """A controller on stepped time, slowed down to real time, with a dashboard process."""

    def __init__(self):
        self.bench = Bench(mode=Mode.DRIVE, duration=50.0)
        self.port = free_port()
        channel = self.bench.channel
        self.process = start_dashboard(RIG, self.bench.ring.name, channel.port, port=self.port)
        self.outcome = None
        self.thread = threading.Thread(target=self._run)
        step, clock = self.bench.clock.advance, self.bench.clock

        def advance(instant):
            ahead = (instant - self.began) - (time.monotonic() - self.start)
            if ahead > 0.0:
                time.sleep(ahead)
            step(instant)

        clock.advance = advance

    def run(self):
        self.began, self.start = self.bench.clock.now(), time.monotonic()
        self.thread.start()

    def _run(self):
        self.outcome = self.bench.run()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.thread.ident is not None:
            self.bench.channel.stopped = True
            self.thread.join()
        self.process.kill()
        self.process.join()
        self.bench._closing.close()

    def open(self, browser):
        """The page, and all that it asks for."""
        page = browser.new_page(viewport={"width": 1000, "height": 640})
        page.set_default_timeout(60_000)
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("websocket", lambda socket: asked.append(socket.url))
        end = time.monotonic() + 60.0
        while True:
            try:
                page.goto(f"http://127.0.0.1:{self.port}")
                break
            except Exception:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
        page.wait_for_selector("#hil-state")
        return page, asked


def state_is(page, title):
    # By locators only: the page's policy lets no script be evaluated but its own.
    page.locator("#hil-state").filter(has_text=re.compile(f"^{title}$")).wait_for()


def colours(page):
    """Pixels and colours of the middle of the page, where the robot is."""
    import io

    from matplotlib.image import imread

    picture = imread(
        io.BytesIO(page.screenshot(clip={"x": 340, "y": 150, "width": 270, "height": 400}))
    )
    whole = np.round(255 * picture[..., :3]).astype(int).reshape(-1, 3)
    return whole, len(np.unique(whole, axis=0))


@pytest.mark.browser
def test_page_from_before_the_run_to_its_stop(browser):
    with Driven() as driven:
        page, asked = driven.open(browser)
        state_is(page, "NOT ARMED YET")
        driven.run()
        state_is(page, "RUN")
        for _ in range(30):  # without a graphics processor the first picture takes its time
            page.wait_for_timeout(1000)
            pixels, count = colours(page)
            red, green, blue = pixels.T
            # The arm's orange is nowhere else.
            orange = ((red > 150) & (green < 0.65 * red) & (blue < 0.35 * red)).sum()
            if count > 200 and orange > 50:
                break
        assert count > 200
        assert orange > 50
        assert page.frame_locator("#hil-view").locator(".uplot canvas").count() == 3
        page.get_by_role("button", name="STOP", exact=True).click()
        state_is(page, "STOP")
        driven.thread.join(60.0)
        assert driven.outcome.reason is Reason.OPERATOR
        page.locator(".hil-card").filter(has_text="loop has ended").wait_for()
        bench = driven.bench
        last = bench.ring.layout.views(bench.rows[-1])
        assert f"OPERATOR: {Reason.OPERATOR.sentence}" in page.inner_text(".hil-card")
        for k, axis in enumerate(bench.rig.axes):
            cells = page.locator(f"tr[data-axis={axis.name}] td").all_inner_texts()
            assert float(cells[1]) == pytest.approx(last["position"][k], abs=5.1e-4)
            assert float(cells[2]) == pytest.approx(last["torque"][k], abs=5.1e-4)
            assert cells[4] == ("on" if last["enabled"][k] else "off")
        cycles = page.locator("tr[data-name=cycles] td").nth(1).inner_text()
        assert int(cycles) == int(last["cycle"][0])
        # The machine may be without a network.
        home = re.compile(r"(http|ws)://(127\.0\.0\.1|localhost):\d+/|data:|blob:")
        assert asked
        assert not [url for url in asked if not home.match(url)]
        # The page shows the end of the session, and stays.
        driven.process.terminate()
        page.get_by_text("The session has ended").wait_for()
        driven.process.join(30.0)
        assert page.inner_text("#hil-state") == "STOP"
        page.close()


@pytest.mark.browser
def test_a_dashboard_that_hangs_or_dies_holds_nothing_up(browser):
    with Driven() as driven:
        page, _ = driven.open(browser)
        driven.run()
        state_is(page, "RUN")
        page.wait_for_selector("#hil-view")  # no reload is left to do
        assert not page.locator(".hil-old").is_visible()
        ring = driven.bench.ring
        os.kill(driven.process.pid, signal.SIGSTOP)
        written = ring.written
        page.wait_for_selector("#hil-dead", state="visible")  # the button, after a second,
        page.wait_for_selector(".hil-old", state="visible")  # and its content
        assert ring.written > written + 100
        driven.process.kill()
        written = ring.written
        page.wait_for_timeout(1000)
        assert ring.written > written + 10
        assert driven.outcome is None
        page.close()


@pytest.mark.browser
def test_a_page_that_was_left_open_serves_the_next_session(browser):
    with Station() as first:
        port = first.port
        page = browser.new_page(viewport={"width": 1000, "height": 640})
        page.set_default_timeout(60_000)
        page.goto(f"http://127.0.0.1:{port}")
        state_is(page, "NOT ARMED YET")
        first.page.say_goodbye()
        page.get_by_text("The session has ended").wait_for()
    with Station(port=port) as second:
        ended = threading.Event()
        thread = threading.Thread(target=second.page.run, args=(ended,))
        thread.start()
        try:
            second.write(state=State.RUN)
            state_is(page, "RUN")
            page.get_by_role("button", name="STOP", exact=True).click()
            end = time.monotonic() + 30.0
            while second.channel.poll() is not Reason.OPERATOR and time.monotonic() < end:
                time.sleep(0.01)
            assert second.channel.stopped
        finally:
            ended.set()
            thread.join()
    page.close()
