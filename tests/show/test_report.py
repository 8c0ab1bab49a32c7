from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser

import pytest
from PIL import Image

from concur.errors import ConcurError
from concur.show import error_figure, new_figure, write_report
from tests.show.fake import AUDIT, SUMMARY, AuditRow, Status, flyer_run, found, rover_run

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Collects text, addresses and pictures, and checks that tags close in order."""

    def __init__(self, source):
        super().__init__()
        self.open, self.text, self.links, self.pictures = [], [], [], []
        self.feed(source)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "action", "srcset", "poster", "data"):
                self.links.append(value)
            if name == "src" and tag == "img":
                self.pictures.append(value)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> without a start"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def run():
    return rover_run(duration=2.0)


@pytest.fixture(scope="module")
def figures(run, tmp_path_factory):
    saved = tmp_path_factory.mktemp("figures") / "saved.png"
    error_figure(run).savefig(saved)
    return {"errors": error_figure(run), "saved": saved}


@pytest.fixture
def report(run, tmp_path):
    def write(summary=SUMMARY, audit=AUDIT, this=run, shown=None):
        return write_report(this, summary, audit, shown or {}, tmp_path / "out").read_text("utf-8")

    return write


def test_report_tells_everything(report, run):
    page = Page(report())
    for row in SUMMARY:
        assert all(part in page.words for part in (row.quantity, row.shown, row.shown_limit))
    for row in AUDIT:
        assert all(
            part in page.words for part in (row.id, row.statement, row.status.value, row.why)
        )
    for body in run.robot.bodies:
        assert body.name in page.words
    for part in ("Planar", "Revolute", "33.4", "disk, radius 0.1 m", "2 s, 201 samples", "R3"):
        assert part in page.words, part


def test_title_and_facts_are_shown(run, tmp_path):
    facts = [("Integration", "rk4, dt = 0.01 s"), ("Plant", "a & b")]
    page = write_report(run, SUMMARY, AUDIT, {}, tmp_path, "to the door", facts)
    source = page.read_text("utf-8")
    assert "<title>to the door</title>" in source
    words = Page(source).words
    assert words.startswith("to the door to the door The run meets its task")
    for label, value in facts:
        assert f"{label} {value}" in words
    plain = Page(write_report(run, SUMMARY, AUDIT, {}, tmp_path).read_text("utf-8")).words
    assert plain.startswith("Run of demo rover")
    assert "servo's model" not in plain


def test_notes_keep_their_lines(run, tmp_path):
    notes = [("The momentum", "assumed 1 < 2\nmeasured 2")]
    source = write_report(run, SUMMARY, AUDIT, {}, tmp_path, notes=notes).read_text("utf-8")
    assert "<h2>The momentum</h2>\n<pre>assumed 1 &lt; 2\nmeasured 2</pre>" in source
    Page(source)
    assert "<pre>" not in write_report(run, SUMMARY, AUDIT, {}, tmp_path).read_text("utf-8")


def test_report_embeds_every_figure_and_refers_to_nothing_else(report, figures):
    source = report(shown=figures)
    page = Page(source)
    assert source.startswith("<!DOCTYPE html>")
    assert len(page.pictures) == len(figures)
    assert page.links == page.pictures
    contents = [
        base64.b64decode(link.removeprefix("data:image/png;base64,")) for link in page.links
    ]
    assert contents[1] == figures["saved"].read_bytes()
    for content in contents:
        with Image.open(io.BytesIO(content)) as image:
            assert image.format == "PNG"
    assert not re.search(r"https?:|@import|url\(|<script|<link", source)


def test_verdict_follows_limits_and_audit(report):
    assert (
        "The run meets its task 4 limits kept, 2 assumptions hold. Not checked: NHR3."
        in Page(report()).words
    )
    missed = Page(report(summary=[found("hand error", 3.0, 1.0), *SUMMARY])).words
    assert "does not meet its task Limits missed: hand error." in missed
    failed = Page(
        report(audit=[AuditRow("CON6", "closed", Status.FAILS, "residual 1"), *AUDIT])
    ).words
    assert "does not meet its task Assumptions that fail: CON6." in failed
    assert "Nothing was judged" in Page(report(summary=[SUMMARY[-1]], audit=[])).words


def test_errors_and_quantities_near_their_limits_come_first_and_others_are_folded(report):
    missed = found("slip", 3.0, 1.0)
    shown, folded = report(summary=[*SUMMARY, missed]).split("<details>", 1)
    for row in (*SUMMARY[:2], SUMMARY[3], missed):
        assert row.quantity in shown
    for row in (SUMMARY[2], SUMMARY[4]):
        assert row.quantity not in shown
        assert row.quantity in folded
    assert "80 %" in shown
    assert "78 %" in folded
    assert SUMMARY[0].shown in shown
    assert "&lt; 0.1 %" in shown


def test_a_run_that_stopped_does_not_meet_its_task(run, tmp_path):
    page = write_report(run, SUMMARY, AUDIT, {}, tmp_path, stopped="a singular configuration")
    words = Page(page.read_text("utf-8")).words
    assert "does not meet its task Stopped early: a singular configuration" in words


def test_the_caption_names_the_view(tmp_path):
    for run, view in ((rover_run(duration=2.0), True), (flyer_run(duration=2.0), False)):
        page = write_report(run, SUMMARY, AUDIT, {"path": new_figure(1.0, 1.0)}, tmp_path)
        words = Page(page.read_text("utf-8")).words
        assert ("in the plane seen from above" in words) == view
        assert ("from the side" in words) != view


def test_residuals_of_rounding_are_sentences(run, tmp_path):
    words = Page(write_report(run, SUMMARY, AUDIT, {}, tmp_path).read_text("utf-8")).words
    assert "Residual of the rolling constraints: at most 2e-15 m/s, zero within rounding." in words
    assert re.search(r"Deviation from the exact error dynamics: at most \S+ m\.", words)


def test_text_is_escaped(report):
    row = AuditRow("CON1", "<b>a & b</b>", Status.HOLDS, "</td>")
    source = report(audit=[row])
    assert "&lt;b&gt;a &amp; b&lt;/b&gt;" in source
    assert row.statement in Page(source).words


def test_errors_keep_their_units(report):
    words = Page(report(this=flyer_run(duration=2.0))).words
    assert re.search(r"R3xSO3 \(0\.15, 0, 0\) 0\.1375 m, 0\.5385 rad", words)


def test_missing_figure_is_refused(run, tmp_path):
    with pytest.raises(ConcurError, match=r"gone\.png: expected a file that can be read"):
        write_report(run, SUMMARY, AUDIT, {"gone": tmp_path / "gone.png"}, tmp_path)


def test_page_that_cannot_be_written_is_refused(run, tmp_path):
    (tmp_path / "report.html").mkdir()
    with pytest.raises(ConcurError, match=r"report\.html: expected a file that can be written"):
        write_report(run, SUMMARY, AUDIT, {"empty": new_figure(1.0, 1.0)}, tmp_path)
