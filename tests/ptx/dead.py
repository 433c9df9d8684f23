"""Which instructions of a compiled kernel no thread can come to, whatever its arguments.

ptxas drops what is dead; PTX still has it, such as the second round of a loop over the threads of a
block. What is known here: a thread's number is less than .maxntid. From that follow ranges of
integers, block by block along the branches that can be taken; a value of which nothing is known
has no range.
"""
import functools
import re

INSTRUCTION = re.compile(r"\s*\{?\s*(?:@(!?)(%p\d+)\s+)?([a-z][\w.]*)\s*(.*?);\}?\s*$")
NO_RESULT = ("st.", "bar.", "bra", "ret", "red.", "cp.async", "membar", "fence")
LEAST_ROUNDS = 3  # through a block, after which what still changes is not known


@functools.cache
def width(op):
    found = re.search(r"\.[usb](16|32|64)$", op)
    return int(found.group(1)) if found else 0


@functools.cache
def number(operand):
    return int(operand) if re.fullmatch(r"-?\d+", operand) else None


@functools.cache
def registers(operand):
    return re.findall(r"%\w+", operand)


@functools.cache
def comparison(op):
    return re.fullmatch(r"setp\.(lt|le|gt|ge|eq|ne)\.[ub](32|64)", op)


def wrapped(low, high, bits):
    """The range modulo 2^bits, if it is one."""
    size = 1 << bits
    return (low % size, high % size) if high - low < size and low // size == high // size else None


def signed(x, bits):
    half = 1 << (bits - 1)
    return (x[0] - 2 * half, x[1] - 2 * half) if x[0] >= half else x if x[1] < half else None


def compare(condition, kind, a, b, bits):
    """True, False or None of `a condition b`."""
    if kind == "s":
        a, b = signed(a, bits), signed(b, bits)
        if not a or not b:
            return None
    if condition in ("gt", "hi", "le", "ls"):
        answer = compare("lt", "u", b, a, bits)
        return answer if condition in ("gt", "hi") else None if answer is None else not answer
    if condition in ("lt", "lo", "ge", "hs"):
        answer = True if a[1] < b[0] else False if a[0] >= b[1] else None
        return answer if condition in ("lt", "lo") else None if answer is None else not answer
    equal = a[0] == b[0] if a[0] == a[1] and b[0] == b[1] else \
        False if a[1] < b[0] or b[1] < a[0] else None
    return None if equal is None else equal == (condition == "eq")


def arithmetic(name, bits, x):
    """The range of a result, or None. x: those of the operands."""
    if name in ("mov", "cvt"):
        return x[0]
    if name == "add":
        return wrapped(x[0][0] + x[1][0], x[0][1] + x[1][1], bits)
    if name == "sub":
        return wrapped(x[0][0] - x[1][1], x[0][1] - x[1][0], bits)
    if name in ("neg", "not"):
        one = int(name == "not")
        return wrapped(-x[0][1] - one, -x[0][0] - one, bits)
    if name in ("mul", "mad"):
        more = x[2] if name == "mad" else (0, 0)
        return wrapped(x[0][0] * x[1][0] + more[0], x[0][1] * x[1][1] + more[1], bits)
    if name in ("shl", "shr") and x[1][0] == x[1][1]:
        n = x[1][0]
        return (x[0][0] >> n, x[0][1] >> n) if name == "shr" else \
            wrapped(x[0][0] << n, x[0][1] << n, bits)
    if name == "and":
        exact = x[0][0] == x[0][1] and x[1][0] == x[1][1]
        return (x[0][0] & x[1][0],) * 2 if exact else (0, min(x[0][1], x[1][1]))
    if name in ("min", "max"):
        pick = min if name == "min" else max
        return pick(x[0][0], x[1][0]), pick(x[0][1], x[1][1])
    return None


def narrowed(condition, x, bound):
    """The part of the range x where `condition bound` holds, or None."""
    low = bound + 1 if condition == "gt" else bound if condition in ("ge", "eq") else 0
    high = bound - 1 if condition == "lt" else bound if condition in ("le", "eq") else x[1]
    part = (max(x[0], low), min(x[1], high))
    return part if part[0] <= part[1] else None


class Kernel:
    def __init__(self, lines, first, end, n_threads):
        """lines first .. end - 1 of a program are the kernel's."""
        self.n_threads = n_threads
        self.code, labels = [], {}  # (line number, not, guard, op, operands)
        for i in range(first, end):
            label = re.match(r"(\$\w+):", lines[i])
            found = INSTRUCTION.match(lines[i])
            if label:
                labels[label.group(1)] = len(self.code)
            elif found:
                operands = re.findall(r"\{.*?\}|\[.*?\]|[^,\s]+", found.group(4))
                self.code.append((i, *found.groups()[:3], operands))
            elif ";" in lines[i] and not re.match(r"\s*\.", lines[i]):
                raise ValueError(f"line {i + 1}: {lines[i].strip()}")
        branches = [i for i, c in enumerate(self.code) if c[3].startswith("bra")]
        self.targets = {i: labels[self.code[i][4][0]] for i in branches}
        self.starts = {0, *self.targets.values(), *(i + 1 for i in self.targets)}

    def value(self, state, operand, bits):
        if operand == "%tid.x":
            return (0, self.n_threads - 1)
        if operand == "%ntid.x":
            return (self.n_threads,) * 2
        known = number(operand)
        return state.get(operand) if known is None else (known % (1 << (bits or 64)),) * 2

    def result(self, state, op, operands):
        """The range of the first operand."""
        name, bits = op.split(".")[0], width(op)
        if name == "setp":
            _, condition, kind = op.split(".")
            x = [self.value(state, o, bits) for o in operands[1:3]]
            known = bits and len(operands) == 3 and all(x)
            answer = compare(condition, kind[0], *x, bits) if known else None
            return None if answer is None else (int(answer),) * 2
        if op.endswith(".pred"):
            x = [state.get(o) for o in operands[1:]]
            if name in ("and", "or") and (int(name == "or"),) * 2 in x:
                return (int(name == "or"),) * 2
            return x[0] if all(x) and name in ("and", "or") else None
        if name == "selp":
            choice, x = state.get(operands[3]), [self.value(state, o, bits) for o in operands[1:3]]
            if choice:
                return x[0] if choice[0] else x[1]
            return (min(x[0][0], x[1][0]), max(x[0][1], x[1][1])) if all(x) else None
        x = [self.value(state, o, bits) for o in operands[1:]]
        if not bits or not all(x):
            return None
        if name == "cvt":
            most = 1 << max(0, min(bits, width(op.rsplit(".", 1)[0])) - 1)
            return x[0] if x[0][1] < most else None
        if name == "shr" and ".s" in op and x[0][1] >= 1 << (bits - 1):
            return None
        return arithmetic(name, 2 * bits if ".wide" in op else bits, x)

    def after_branch(self, state, test, holds):
        """The state where the comparison of a register with a number holds, or does not."""
        opposite = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
        if not test:
            return state
        name, condition, bound, bits = test
        condition = condition if holds else opposite[condition]
        part = narrowed(condition, state.get(name, (0, (1 << bits) - 1)), bound)
        return part and {**state, name: part}

    def run_block(self, start, state):
        """Yields (where to, state) for each way out."""
        tests = {}  # predicate: a comparison of a register with a number
        for i in range(start, len(self.code)):
            if i > start and i in self.starts:
                yield i, state
                return
            _, negated, guard, op, operands = self.code[i]
            self.reached.add(i)
            taken = state.get(guard) if guard else (1, 1)
            if taken and negated:
                taken = (1 - taken[0],) * 2
            if op.startswith("bra"):
                for to, goes in ((self.targets[i], True), (i + 1, False)):
                    after = self.after_branch(state, tests.get(guard), goes != bool(negated))
                    if taken != (int(not goes),) * 2 and after is not None:
                        yield to, after
                return
            if op in ("ret", "exit") and taken == (1, 1):
                return
            if op.startswith(NO_RESULT) or not operands:
                continue
            found = self.result(state, op, operands)
            for name in registers(operands[0]):
                if found and (taken == (1, 1) or state.get(name) == found):
                    state[name] = found
                else:
                    state.pop(name, None)
                if tests:
                    tests = {p: t for p, t in tests.items() if name not in (p, t[0])}
            test = comparison(op)
            if test and not guard and operands[1][0] == "%" and operands[2].isdigit():
                tests[operands[0]] = (operands[1], test[1], int(operands[2]), int(test[2]))

    def dead_lines(self):
        """Numbers, from 0, of lines that no thread comes to."""
        self.reached, before, rounds, waiting = set(), {0: {}}, {}, [0]
        while waiting:
            start = waiting.pop()
            for to, state in self.run_block(start, dict(before[start])):
                if to >= len(self.code):
                    continue
                if to not in before:
                    before[to] = dict(state)
                    waiting.append(to)
                    continue
                old, rounds[to] = before[to], rounds.get(to, 0) + 1
                new = {}
                for name in old.keys() & state.keys():
                    a, b = old[name], state[name]
                    joined = (min(a[0], b[0]), max(a[1], b[1]))
                    if joined == a or rounds[to] < LEAST_ROUNDS:
                        new[name] = joined
                if new != old:
                    before[to] = new
                    waiting.append(to)
        return {c[0] for i, c in enumerate(self.code) if i not in self.reached}
