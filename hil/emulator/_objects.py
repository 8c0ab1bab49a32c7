"""The object dictionary of the emulated CiA 402 drive (CiA 301, IEC 61800-7-201)."""

from __future__ import annotations

from fractions import Fraction

from canopen.objectdictionary import (
    INTEGER8,
    INTEGER16,
    INTEGER32,
    UNSIGNED8,
    UNSIGNED16,
    UNSIGNED32,
    VISIBLE_STRING,
    ObjectDictionary,
    ODRecord,
    ODVariable,
)

TORQUE_MODE = 10
"""Cyclic synchronous torque, the only mode of operation (0x6060)."""

U8, U16, U32 = UNSIGNED8, UNSIGNED16, UNSIGNED32
I8, I16, I32, TEXT = INTEGER8, INTEGER16, INTEGER32, VISIBLE_STRING

MAPPABLE = 8
"""Entries of a mapping: 8 bytes hold no more."""

_Entry = tuple[str, int, str, int | str]


def dictionary(
    node: int, rated_torque: int, counts: float, peak: int, watchdog: bool
) -> ObjectDictionary:
    """Build the dictionary; rated torque in the unit of the drive, peak torque in per mille."""
    objects: dict[int, tuple[str, dict[int, _Entry]]] = {}
    turn = Fraction(counts).limit_denominator(10**6)

    def single(index: int, name: str, kind: int, access: str, value: int | str) -> None:
        objects[index] = (name, {0: (name, kind, access, value)})

    def record(index: int, name: str, entries: dict[int, _Entry]) -> None:
        first: dict[int, _Entry] = {0: ("highest sub-index", U8, "ro", max(entries))}
        objects[index] = (name, first | entries)

    single(0x1000, "device type", U32, "ro", 0x00020192)
    single(0x1001, "error register", U8, "ro", 0)
    errors: dict[int, _Entry] = {k: (f"error {k}", U32, "ro", 0) for k in range(1, 5)}
    objects[0x1003] = ("error history", {0: ("count", U8, "rw", 0), **errors})
    single(0x1005, "identifier of SYNC", U32, "rw", 0x80)
    single(0x1008, "device name", TEXT, "ro", "emulated torque drive")
    single(0x1009, "hardware version", TEXT, "ro", "none")
    single(0x100A, "software version", TEXT, "ro", "1")
    single(0x1014, "identifier of EMCY", U32, "ro", 0x80 + node)
    if watchdog:
        record(0x1016, "heartbeat consumers", {1: ("host", U32, "rw", 0)})
    single(0x1017, "period of the own heartbeat", U16, "rw", 0)
    record(
        0x1018,
        "identity",
        {
            1: ("vendor", U32, "ro", 0),
            2: ("product", U32, "ro", 402),
            3: ("revision", U32, "ro", 1),
            4: ("serial number", U32, "ro", node),
        },
    )
    record(0x1029, "error behaviour", {1: ("communication", U8, "rw", 0)})
    for number, identifier in enumerate((0x200, 0x300)):
        entries: dict[int, _Entry] = {
            1: ("identifier", U32, "rw", identifier + node + (number > 0) * 0x80000000),
            2: ("transmission", U8, "rw", 255),
        }
        if watchdog:
            entries[5] = ("event timer", U16, "rw", 0)
        record(0x1400 + number, f"received PDO {number + 1}", entries)
        record(
            0x1800 + number,
            f"sent PDO {number + 1}",
            {
                1: ("identifier", U32, "rw", identifier - 0x80 + node + (number > 0) * 0x80000000),
                2: ("transmission", U8, "rw", 255),
                3: ("inhibit time", U16, "rw", 0),
                5: ("event timer", U16, "rw", 0),
            },
        )
        for base, usual in ((0x1600, 0x60400010), (0x1A00, 0x60410010)):
            mapped = [usual if k == 0 and number == 0 else 0 for k in range(MAPPABLE)]
            lines: dict[int, _Entry] = {
                k + 1: (f"entry {k + 1}", U32, "rw", mapped[k]) for k in range(MAPPABLE)
            }
            lines[0] = ("entries", U8, "rw", int(number == 0))
            objects[base + number] = (f"mapping {base + number:#x}", lines)
    single(0x6007, "abort connection option", I16, "rw", 1)
    single(0x603F, "error code", U16, "ro", 0)
    single(0x6040, "control word", U16, "rw", 0)
    single(0x6041, "status word", U16, "ro", 0)
    single(0x605A, "quick stop option", I16, "rw", 2)
    single(0x605B, "shutdown option", I16, "rw", 0)
    single(0x605C, "disable operation option", I16, "rw", 1)
    single(0x605E, "fault reaction option", I16, "rw", 2)
    single(0x6060, "mode of operation", I8, "rw", 0)
    single(0x6061, "mode in operation", I8, "ro", 0)
    single(0x6064, "position", I32, "ro", 0)
    single(0x606C, "velocity", I32, "ro", 0)
    single(0x6071, "target torque", I16, "rw", 0)
    single(0x6072, "largest torque", U16, "rw", peak)
    single(0x6076, "rated torque", U32, "ro", rated_torque)
    single(0x6077, "torque", I16, "ro", 0)
    record(
        0x608F,
        "encoder resolution",
        {1: ("counts", U32, "ro", turn.numerator), 2: ("motor turns", U32, "ro", turn.denominator)},
    )
    record(
        0x6091, "gear ratio", {1: ("motor turns", U32, "ro", 1), 2: ("shaft turns", U32, "ro", 1)}
    )
    single(0x6502, "supported modes", U32, "ro", 1 << (TORQUE_MODE - 1))

    made = ObjectDictionary()  # type: ignore[no-untyped-call]
    made.node_id = node
    for index, (name, members) in objects.items():
        variables = [_variable(index, sub, *entry) for sub, entry in members.items()]
        if len(variables) == 1:
            made.add_object(variables[0])
            continue
        group = ODRecord(name, index)
        for variable in variables:
            group.add_member(variable)
        made.add_object(group)
    return made


def _variable(
    index: int, sub: int, name: str, kind: int, access: str, value: int | str
) -> ODVariable:
    made = ODVariable(name, index, sub)
    made.data_type = kind
    made.access_type = access
    made.default = value  # type: ignore[assignment]
    made.pdo_mappable = index >= 0x6000
    return made
