"""MCAP files, read by the reader of the format's own library."""

import json
import sys

import numpy as np
import pytest
from mcap.reader import make_reader

from hil.errors import RecordError
from hil.record import Record
from hil.record._drain import write_json
from hil.record._mcap import TOPICS
from hil.record.manifest import make_manifest
from tests.hil._records import layout_of_rig, make_rig, numbered, task_and_servo
from tests.hil.record.test_record import write_rows


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    folder = tmp_path_factory.mktemp("record")
    rig = make_rig(folder)
    layout = layout_of_rig(rig)
    manifest = make_manifest(rig, layout, task_and_servo()[1])
    manifest["wall_minus_clock"] = 1.6e9
    write_json(folder / "manifest.json", manifest)
    rows = numbered(layout, 0, 25)
    rows[:, layout.spans["time"]] = 50.0 + 0.004 * np.arange(25)[:, None]
    rows[3, layout.spans["torque"]] = [np.nan, np.inf, -np.inf, 1e308, -0.0]
    write_rows(folder, layout, rows)
    return Record.load(folder)


@pytest.fixture(scope="module")
def messages(record, tmp_path_factory):
    path = record.save_mcap(tmp_path_factory.mktemp("mcap") / "run.mcap")
    with open(path, "rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        found = list(reader.iter_messages())
        metadata = list(reader.iter_metadata())
    return found, metadata


def strict(text):
    """JSON as the standard has it: without NaN and infinities."""

    def refuse(name):
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)


def test_each_cycle_has_a_message_on_each_topic(messages, record):
    found, _ = messages
    for topic in TOPICS:
        mine = [message for _, channel, message in found if channel.topic == f"/{topic}"]
        assert [message.sequence for message in mine] == list(range(25))
        stamps = np.array([message.log_time for message in mine]) - 1_600_000_050_000_000_000
        np.testing.assert_allclose(stamps, 4e6 * np.arange(25), atol=1e3)
    assert len(found) == 25 * len(TOPICS)


def test_numbers_come_back_exactly(messages, record):
    found, _ = messages
    seen = set()
    for _, channel, message in found:
        data, k = strict(message.data), message.sequence
        for name in TOPICS[channel.topic[1:]]:
            seen.add(name)
            expected = np.atleast_1d(record[name][k])
            values = data[name].values() if isinstance(data[name], dict) else [data[name]]
            for value, number in zip(values, expected, strict=True):
                assert value == number if np.isfinite(number) else value is None
    assert seen == set(record.names)


def test_schemas_tell_types_and_units(messages):
    found, _ = messages
    schemas = {channel.topic: schema for schema, channel, _ in found}
    assert all(schema.encoding == "jsonschema" for schema in schemas.values())
    torque = json.loads(schemas["/torque"].data)["properties"]["torque"]
    assert torque["properties"]["turret"]["description"] == "turret [N m]"
    state = json.loads(schemas["/state"].data)["properties"]["q"]
    assert state["properties"]["chassis_x"]["description"] == "chassis.x [m]"
    for _, channel, message in found:
        properties = json.loads(schemas[channel.topic].data)["properties"]
        assert set(strict(message.data)) == set(properties)


def test_the_manifest_goes_along(messages, record):
    (metadata,) = messages[1]
    assert metadata.name == "manifest"
    assert json.loads(metadata.metadata["json"])["files"] == record.manifest["files"]


def test_a_file_that_cannot_be_written_is_refused(record, tmp_path):
    with pytest.raises(RecordError, match="a file that can be written"):
        record.save_mcap(tmp_path / "none" / "run.mcap")


def test_a_missing_package_is_named_with_its_extra(record, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcap.writer", None)
    with pytest.raises(RecordError, match=r"\[rig\]"):
        record.save_mcap(tmp_path / "run.mcap")
