"""Graphs in an order in which CasADi's interpreter is quick.

The interpreter jumps to the code of each instruction, and a processor guesses where to from the
few jumps before. In CasADi's own order, depth first, operations follow each other without a
pattern: every other guess is wrong, which costs more than the operation. Here instructions are put
in an order where an operation is mostly followed by the one that followed it the last time. To
that end

- differences become sums with a negated operand, which are the same numbers: ``a - b * c`` is
  ``a + b * (-c)``, and one negated value serves many; squares and doubles become products and sums;
- of all that is ready, an instruction with the operation that followed last time comes next, and of
  these the one on which the longest chain depends.

CasADi has no door for this. What its `serialize` writes holds the instructions in one piece, four
integers each, and CasADi tells the same integers when asked. Where that piece is found, once and
as told, it is replaced; what comes of it is read back and tried. Where anything is other than
expected, a function stays as it is.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

_SUM, _DIFFERENCE, _PRODUCT = ca.OP_ADD, ca.OP_SUB, ca.OP_MUL
_CONSTANT, _INPUT, _OUTPUT = ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT
_COMMON = (_SUM, _PRODUCT)
_TWO_OF_ONE = {ca.OP_SQ: _PRODUCT, ca.OP_TWICE: _SUM}
_LAST_PLAIN = ca.OP_ATAN2
"""Operations of one or two numbers are numbered from zero up to this one."""


@dataclass
class _Programme:
    """Instructions, each with those whose values it takes.

    Parameters
    ----------
    operations : list of int
        Operations by CasADi's numbers.
    operands : list of tuple of int
        Indices of the instructions whose values are taken.
    details : list
        Value of a constant; index of argument or result and entry therein; else None.
    """

    operations: list[int] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    details: list[tuple[float, ...]] = field(default_factory=list)

    def add(self, operation: int, operands: tuple[int, ...], *details: float) -> int:
        """Append an instruction; its index."""
        self.operations.append(operation)
        self.operands.append(operands)
        self.details.append(details)
        return len(self.operations) - 1


def ordered(function: ca.Function) -> ca.Function | None:
    """Let CasADi's interpreter run a function faster.

    Parameters
    ----------
    function : casadi.Function
        A function over SX.

    Returns
    -------
    casadi.Function or None
        One to be called with numbers only, which gives the same numbers, up to the sign of a zero;
        no derivatives or expressions. None where CasADi keeps instructions otherwise than known, or
        the function holds others than operations of one or two numbers.
    """
    if not function.is_a("SXFunction"):
        return None
    programme = _read(function)
    if programme is None:
        return None
    programme = _without_differences(programme)
    records, registers = _assembled(programme, _order(programme))
    made = _with_records(function, records, registers)
    return made if made is not None and _agree(function, made) else None


def _read(function: ca.Function) -> _Programme | None:
    """Instructions as CasADi tells them, squares and doubles as products and sums."""
    programme, holder = _Programme(), dict[int, int]()
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        places, given = function.instruction_output(k), function.instruction_input(k)
        if operation == _OUTPUT:
            programme.add(operation, (holder[given[0]],), *places)
            continue
        if operation == _CONSTANT:
            own = programme.add(operation, (), function.instruction_constant(k))
        elif operation == _INPUT:
            own = programme.add(operation, (), *given)
        elif operation <= _LAST_PLAIN and len(given) in (1, 2):
            operands = tuple(holder[place] for place in given)
            if operation in _TWO_OF_ONE:
                operation, operands = _TWO_OF_ONE[operation], 2 * operands
            own = programme.add(operation, operands)
        else:
            return None
        holder[places[0]] = own
    return programme


def _without_differences(old: _Programme) -> _Programme:
    """Sums in place of differences."""
    turned = _turned(old)
    negated = _negated(old, turned)
    new, place = _Programme(), dict[int, int]()
    constants, negatives = dict[str, int](), dict[int, int]()

    def constant(value: float) -> int:
        name = value.hex()  # tells zeros apart, and finds NaN
        if name not in constants:
            constants[name] = new.add(_CONSTANT, (), value)
        return constants[name]

    def signed(index: int, negative: bool) -> int:
        """Where a value is, or its negative; constants come when they are asked for."""
        if old.operations[index] == _CONSTANT:
            value = old.details[index][0]
            return constant(-value if negative else value)
        if turned[index] == negative:
            return place[index]
        if index not in negatives:
            negatives[index] = new.add(_PRODUCT, (place[index], constant(-1.0)))
        return negatives[index]

    for k, (operation, taken) in enumerate(zip(old.operations, old.operands, strict=True)):
        signs = [False] * len(taken)
        if operation in (_SUM, _DIFFERENCE):
            signs = [turned[k], turned[k] != (operation == _DIFFERENCE)]
            operation = _SUM
        elif operation == _PRODUCT:
            signs = [turned[i] for i in taken]
            if _unmatched(k, taken, turned):
                at = next((n for n, i in enumerate(taken) if i in negated), 0)
                signs[at] = not signs[at]
        if operation != _CONSTANT:
            operands = tuple(map(signed, taken, signs))
            place[k] = new.add(operation, operands, *old.details[k])
    return new


def _turned(programme: _Programme) -> list[bool]:
    """Of which values sums and differences want the negative only: these are computed so."""
    operations = programme.operations
    turned = [False] * len(operations)
    wanted: list[set[bool]] = [set() for _ in operations]
    for k in reversed(range(len(operations))):
        operation, taken = operations[k], programme.operands[k]
        if operation in (_SUM, _DIFFERENCE, _PRODUCT):
            turned[k] = wanted[k] == {True}
        if operation in (_SUM, _DIFFERENCE):
            wanted[taken[0]].add(turned[k])
            wanted[taken[1]].add(turned[k] != (operation == _DIFFERENCE))
        elif operation != _PRODUCT:  # of a product one factor can be negated or the other
            for i in taken:
                wanted[i].add(False)
    return turned


def _unmatched(product: int, factors: tuple[int, ...], turned: Sequence[bool]) -> bool:
    """Whether the factors of a product make it with the other sign than is wanted."""
    return (turned[factors[0]] != turned[factors[1]]) != turned[product]


def _negated(programme: _Programme, turned: Sequence[bool]) -> set[int]:
    """Values that are needed with both signs, few of them for the products."""
    operations = programme.operations
    negated: set[int] = set()
    products: dict[int, set[int]] = defaultdict(set)
    for k, taken in enumerate(programme.operands):
        if operations[k] in (_SUM, _DIFFERENCE):
            signs = (turned[k], turned[k] != (operations[k] == _DIFFERENCE))
            negated.update(i for i, sign in zip(taken, signs, strict=True) if turned[i] != sign)
        elif operations[k] == _PRODUCT and _unmatched(k, taken, turned):
            for i in taken:
                products[i].add(k)
    there = {details[0] for details in programme.details if len(details) == 1}

    def rank(i: int) -> tuple[bool, int, int]:
        """What is negated anyway first, then what serves most products."""
        free = i in negated or (operations[i] == _CONSTANT and -programme.details[i][0] in there)
        return not free, -len(products[i]), i

    heap = [rank(i) for i in products]
    heapq.heapify(heap)
    while heap:
        *_, i = before = heapq.heappop(heap)
        if before != rank(i):
            heapq.heappush(heap, rank(i))
        elif products[i]:
            negated.add(i)
            for k in list(products[i]):
                for j in programme.operands[k]:
                    products[j].discard(k)
    return negated


def _order(programme: _Programme) -> list[int]:
    """Order in which an operation mostly follows the one that it followed the last time."""
    operations, operands = programme.operations, programme.operands
    count = len(operations)
    users: list[list[int]] = [[] for _ in range(count)]
    missing, height = [0] * count, [0] * count
    for k, taken in enumerate(operands):
        for i in set(taken):
            users[i].append(k)
            missing[k] += 1
    for k in reversed(_by_need(missing, users)):
        height[k] = max((height[u] + 1 for u in users[k]), default=0)
    ready: dict[int, list[tuple[int, int]]] = defaultdict(list)
    order: list[int] = []

    def take(k: int) -> None:
        order.append(k)
        for u in users[k]:
            missing[u] -= 1
            if not missing[u]:
                heapq.heappush(ready[operations[u]], (-height[u], u))

    for source in (_INPUT, _CONSTANT):
        for k in range(count):
            if operations[k] == source:
                take(k)
    follower: dict[int, int] = {}
    last = _PRODUCT
    while len(order) < count:
        chosen = follower.get(last, last)
        if not ready[chosen]:
            # What is rare comes in between, and others wait for it; results are handed out last.
            waiting = [o for o, those in ready.items() if those]
            chosen = min(waiting, key=lambda o: (o == _OUTPUT, o in _COMMON, ready[o][0]))
        if chosen in _COMMON:
            follower[last] = last = chosen
        take(heapq.heappop(ready[chosen])[1])
    return order


def _by_need(missing: Sequence[int], users: Sequence[Sequence[int]]) -> list[int]:
    """Some order in which operands come first."""
    left = list(missing)
    order = [k for k, n in enumerate(left) if not n]
    for k in order:
        for u in users[k]:
            left[u] -= 1
            if not left[u]:
                order.append(u)
    return order


def _assembled(programme: _Programme, order: Sequence[int]) -> tuple[np.ndarray, int]:
    """Instructions as CasADi keeps them, four integers each, and how many registers they use."""
    last_use = {i: at for at, k in enumerate(order) for i in programme.operands[k]}
    records = np.zeros((len(order), 4), dtype=np.int32)
    free: list[int] = []
    register: dict[int, int] = {}
    registers = 0
    for at, k in enumerate(order):
        operation, taken, details = (
            programme.operations[k],
            programme.operands[k],
            programme.details[k],
        )
        record = records[at]
        record[0] = operation
        if operation == _CONSTANT:
            record[2:] = np.array(details).view(np.int32)
        elif operation == _INPUT:
            record[2:] = details
        else:
            record[2:] = register[taken[0]], register[taken[-1]]
        free += [register[i] for i in set(taken) if last_use[i] == at]
        if operation == _OUTPUT:
            record[1], record[3] = details
            continue
        if not free:
            free.append(registers)
            registers += 1
        register[k] = record[1] = free.pop()
        if k not in last_use:
            free.append(register[k])
    return records, registers


def _with_records(function: ca.Function, records: np.ndarray, registers: int) -> ca.Function | None:
    """The function with other instructions in place of its own."""
    symbols, options = function.sx_in(), {"live_variables": False}
    names = function.name(), function.name_in(), function.name_out()
    results = function.call(symbols)
    missing = len(records) - ca.Function(names[0], symbols, results, options).n_instructions()
    entries = ((result, k) for result in results for k in range(result.nnz()))
    varying = next(((r, k) for r, k in entries if not r.nz[k].is_constant()), None)
    if varying is None or missing < 0:
        return None
    # Room for what comes on top.
    result, k = varying
    entry = result.nz[k]
    for _ in range(missing):
        entry = ca.sin(entry)
    result.nz[k] = entry
    room = ca.Function(names[0], symbols, results, *names[1:], options)
    if room.n_instructions() != len(records) or registers > room.sz_w():
        return None
    code = _bytes(room.serialize())
    start = _found(code, *_told(room))
    if start is None:
        return None
    text = _text(code[:start] + records.tobytes() + code[start + records.nbytes :])
    try:
        made = ca.Function.deserialize(text)
        return made if made.serialize() == text else None
    except RuntimeError:
        return None


def _told(function: ca.Function) -> tuple[np.ndarray, np.ndarray]:
    """Instructions in four integers as CasADi tells them, and which of these it tells."""
    count = function.n_instructions()
    told = np.zeros((count, 4), dtype=np.int32)
    known = np.zeros((count, 4), dtype=bool)
    known[:, :2] = True
    for k in range(count):
        operation = function.instruction_id(k)
        places, given = function.instruction_output(k), function.instruction_input(k)
        told[k, :2] = operation, places[0]
        if operation == _CONSTANT:
            told[k, 2:] = np.array([function.instruction_constant(k)]).view(np.int32)
        elif operation == _OUTPUT:
            told[k, 2:] = given[0], places[1]
        else:
            told[k, 2 : 2 + len(given)] = given
        known[k, 2:] = True
        known[k, 3] = operation in (_CONSTANT, _OUTPUT) or len(given) == 2
    return told, known


def _found(code: bytes, told: np.ndarray, known: np.ndarray) -> int | None:
    """Where instructions stand in a code, if they do once."""
    found, head = [], told[0, :2].tobytes()
    at = code.find(head)
    while 0 <= at <= len(code) - told.nbytes:
        there = np.frombuffer(code, np.int32, told.size, at).reshape(told.shape)
        if np.array_equal(there[known], told[known]):
            found.append(at)
        at = code.find(head, at + 1)
    return found[0] if len(found) == 1 else None


def _bytes(text: str) -> bytes:
    """What CasADi writes as two letters for each byte, the low half first."""
    halves = np.frombuffer(text.encode("ascii"), np.uint8) - ord("a")
    return (halves[0::2] | (halves[1::2] << 4)).tobytes()


def _text(code: bytes) -> str:
    whole = np.frombuffer(code, np.uint8)
    halves = np.column_stack([whole & 15, whole >> 4]) + ord("a")
    return halves.astype(np.uint8).tobytes().decode("ascii")


def _agree(one: ca.Function, other: ca.Function) -> bool:
    """Whether two functions give the same numbers for numbers drawn at random."""
    rng = np.random.default_rng(0)
    for size in (1.0, 0.1):
        given = [ca.DM(rng.uniform(-size, size, one.size_in(k))) for k in range(one.n_in())]
        pairs = zip(one.call(given), other.call(given), strict=True)
        if not all(np.array_equal(np.array(a), np.array(b), equal_nan=True) for a, b in pairs):
            return False
    return True
