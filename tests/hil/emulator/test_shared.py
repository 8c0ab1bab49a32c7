"""Memory shared by processes."""

import multiprocessing

import numpy as np
import pytest

from hil.emulator._shared import Block

NAMES = (("a", 1), ("b", 40), ("c", 2))


def _write(block, rounds):
    for k in range(rounds):
        for name, _ in NAMES:
            block.draft(name)[:] = k
        block.publish()


def test_what_was_published_is_read():
    block = Block(NAMES)
    block.draft("b")[:] = np.arange(40.0)
    assert not block.read()["b"].any()
    block.publish()
    assert np.array_equal(block.read()["b"], np.arange(40.0))
    assert block.snapshot()[block.place("b") + 3] == 3.0
    block.read()["b"][:] = 7.0  # a copy
    assert block.read()["b"][0] == 0.0


@pytest.mark.extended
def test_another_process_writes_and_no_reading_is_torn():
    context = multiprocessing.get_context("spawn")
    block = Block(NAMES)
    writer = context.Process(target=_write, args=(block, 60_000))
    writer.start()
    seen = set()
    while writer.is_alive():
        numbers = block.snapshot()
        assert numbers.min() == numbers.max()
        seen.add(float(numbers[0]))
    writer.join()
    assert writer.exitcode == 0
    assert block.read()["a"][0] == 59_999
    assert len(seen) > 2  # few where other processes keep the machine busy


def test_a_writer_that_died_halfway_does_not_stop_readers():
    block = Block(NAMES)
    _write(block, 4)
    block._memory[0] += 1.0
    assert block.read()["a"][0] == 3.0
