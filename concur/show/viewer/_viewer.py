"""The page of a viewer, and the thread that keeps it up to date."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from concur.show.viewer._server import silenced, start_server

RATE = 25.0
"""Updates of the scene per second."""

WIDTH = 360
"""Width of the panel beside the scene, pixels."""


class Viewer(ABC):
    """A page in the browser, served by this process until `close`.

    Parameters
    ----------
    title : str
        Title of the page.
    port : int
        Port of this machine; 0: any free port.
    browser : bool
        Whether to open the page in a browser, if this machine has a screen.
    """

    def __init__(self, title: str, port: int, browser: bool) -> None:
        self.server = start_server("127.0.0.1", port, title)
        gui = self.server.gui
        gui.configure_theme(show_logo=False, show_share_button=False)
        gui.set_panel_label(title)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(WIDTH)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        try:
            self.build()
            self.update()
            self._thread.start()
            screen = {"DISPLAY", "WAYLAND_DISPLAY"} & {*os.environ}
            if browser and (screen or sys.platform in ("darwin", "win32")):
                webbrowser.open(self.url)
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://127.0.0.1:{self.server.get_port()}"

    @abstractmethod
    def build(self) -> None:
        """Add scene and controls to the page."""

    @abstractmethod
    def update(self) -> None:
        """Apply the controls of the page to the scene."""

    def _keep(self) -> None:
        while not self._ended.wait(1.0 / RATE):
            self.update()

    def wait(self, ready: Callable[[], object] = lambda: None) -> None:
        """Serve until `close`, Ctrl-C or a signal to end, also as a shell's background job.

        Parameters
        ----------
        ready : callable, optional
            Called once signals end the wait.
        """
        ended = threading.Event()
        before = {}
        for ending in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError):  # not in the main thread
                before[ending] = signal.signal(ending, lambda *_: ended.set())
        try:
            ready()
            while not (ended.is_set() or self._ended.wait(0.5)):
                pass
        finally:
            for ending, handler in before.items():
                signal.signal(ending, handler)
            self.close()

    def close(self) -> None:
        """End the server; the page stays and shows that it is disconnected."""
        if self._ended.is_set():
            return
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        with silenced():
            self.server.stop()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
