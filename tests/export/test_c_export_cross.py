"""Exported C on other processors: cross-compiled, and replayed under emulators.

These need Debian's gcc-aarch64-linux-gnu, gcc-arm-none-eabi, qemu-user and qemu-system-arm, and
fail without: they run when they are asked for, with `pytest -m cross`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.export._export import NAME, STRICT, run, servo

pytestmark = pytest.mark.cross

KINDS = ["rover", "free-flyer", "tractor", "free-flyer, limited"]
CASES = [(kind, "double") for kind in KINDS] + [(kind, "single") for kind in KINDS[:3]]
BOARD = Path(__file__).with_name("cortex_m7")
CORTEX_M7 = ("-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard")
LARGEST = {"rover": 9_000, "free-flyer": 40_000, "tractor": 8_000, "free-flyer, limited": 120_000}
"""Bytes of code and constants that a law may take."""


def replayed(done):
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"^{NAME}: \d+ states, 0 wrong", done.stdout, re.MULTILINE), done.stdout
    print(done.stdout.strip())


@pytest.mark.parametrize(("kind", "precision"), CASES)
def test_replays_on_aarch64(kind, precision, tmp_path):
    servo(kind).export(tmp_path, name=NAME, precision=precision)
    names = (f"{NAME}.c", "replay.c", "-o", "replay", "-lm")
    done = run("aarch64-linux-gnu-gcc", "-O1", *STRICT, *names, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    replayed(run("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "./replay", cwd=tmp_path))


@pytest.mark.parametrize(("kind", "precision"), CASES)
def test_replays_on_a_cortex_m7(kind, precision, tmp_path):
    servo(kind).export(tmp_path, name=NAME, precision=precision)
    compiler = ("arm-none-eabi-gcc", *CORTEX_M7)
    done = run(*compiler, "-Os", *STRICT, "-fstack-usage", "-c", f"{NAME}.c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    code, data, zeroed = map(int, size(tmp_path, f"{NAME}.o")[:3])
    stack = max(int(row.split()[1]) for row in (tmp_path / f"{NAME}.su").read_text().splitlines())
    print(f"{kind}, {precision}: {code} bytes of code, {stack} bytes of the largest frame")
    assert (data, zeroed) == (0, 0)
    assert code <= LARGEST[kind]
    names = (f"{NAME}.o", "replay.c", BOARD / "startup.c", "-o", "replay.elf", "-lm")
    linked = ("-nostartfiles", "--specs=rdimon.specs", "-T", BOARD / "link.ld")
    done = run(*compiler, "-std=gnu99", "-O1", *names, *linked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    board = ("qemu-system-arm", "-machine", "mps2-an500", "-nographic", "-semihosting-config")
    replayed(run(*board, "enable=on,target=native", "-kernel", "replay.elf", cwd=tmp_path))


def test_single_precision_needs_no_double_on_a_cortex_m4(tmp_path):
    servo("rover").export(tmp_path, name=NAME, precision="single")
    core = ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
    done = run("arm-none-eabi-gcc", *core, "-O2", *STRICT, "-c", f"{NAME}.c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = run("arm-none-eabi-nm", "-u", f"{NAME}.o", cwd=tmp_path).stdout.split()
    software = [name for name in names if name.startswith("__aeabi_d") or name.endswith("2d")]
    assert not software, f"double precision by software: {software}"


def test_replay_on_the_board_finds_what_is_wrong(tmp_path):
    servo("rover").export(tmp_path, name=NAME)
    text = (tmp_path / f"{NAME}.c").read_text()
    wrong = text.replace("output->u[i] = context->u[i]", "output->u[i] = -context->u[i]")
    assert wrong != text
    (tmp_path / f"{NAME}.c").write_text(wrong)
    names = (f"{NAME}.c", "replay.c", BOARD / "startup.c", "-o", "replay.elf", "-lm")
    linked = ("-nostartfiles", "--specs=rdimon.specs", "-T", BOARD / "link.ld")
    done = run("arm-none-eabi-gcc", *CORTEX_M7, "-std=gnu99", *names, *linked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    board = ("qemu-system-arm", "-machine", "mps2-an500", "-nographic", "-semihosting-config")
    done = run(*board, "enable=on,target=native", "-kernel", "replay.elf", cwd=tmp_path)
    assert done.returncode == 1
    assert "100 wrong" in done.stdout or "101 wrong" in done.stdout, done.stdout[-200:]


def size(folder, name):
    return run("arm-none-eabi-size", name, cwd=folder).stdout.splitlines()[1].split()
