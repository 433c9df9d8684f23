"""What the loader reads of a program or a shared library: an ELF file of 64 bits, little endian."""
import mmap
import re
import struct

LOAD, DYNAMIC, GNU_STACK, GNU_RELRO = 1, 2, 0x6474E551, 0x6474E552
NULL, NEEDED, STRTAB, STRSZ, SONAME, RPATH, RUNPATH, FLAGS, FLAGS_1 = 0, 1, 5, 10, 14, 15, 29, 30, 0x6FFFFFFB
BIND_NOW, NOW, PIE = 8, 1, 0x08000000
EXECUTE = 1
ENDBR64 = b"\xf3\x0f\x1e\xfa"


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(6) == b"\x7fELF\x02\x01"


class Elf:
    """A file that the loader takes; one without a dynamic section has no paths and needs nothing."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        (self.type,) = struct.unpack_from("<H", self.bytes, 16)
        (table,) = struct.unpack_from("<Q", self.bytes, 32)
        size, n = struct.unpack_from("<HH", self.bytes, 54)
        # (type, flags, offset, address, _, bytes in the file, bytes in memory, _)
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.bytes, table + i * size) for i in range(n)]
        self.dynamic = list(self._dynamic())
        at, size = (self.values(STRTAB) or [0])[0], (self.values(STRSZ) or [0])[0]
        self.strings = self.bytes[self._offset(at):][:size] if size else b""

    def _dynamic(self):
        for kind, _, offset, _, _, size, _, _ in self.segments:
            for at in range(offset, offset + size, 16) if kind == DYNAMIC else ():
                tag, value = struct.unpack_from("<QQ", self.bytes, at)
                if tag == NULL:
                    return
                yield tag, value

    def _offset(self, address):
        for kind, _, offset, begin, _, size, _, _ in self.segments:
            if kind == LOAD and begin <= address < begin + size:
                return offset + address - begin
        raise ValueError(f"no segment has {address:#x}")

    def values(self, tag):
        return [value for t, value in self.dynamic if t == tag]

    def flags(self, tag):
        return (self.values(tag) or [0])[0]

    def texts(self, tag):
        return [self.strings[v:self.strings.index(b"\0", v)].decode() for v in self.values(tag)]

    @property
    def paths(self):
        """The folders in which it looks for libraries."""
        return [folder for text in self.texts(RPATH) + self.texts(RUNPATH) for folder in text.split(":")]

    @property
    def libraries(self):
        """Names of libraries among its strings: those that it needs, and those that it loads."""
        ends = [m.span() for m in re.finditer(rb"\.so(?:\.\d+)*\0", self.bytes)]
        found = {self.bytes[self.bytes.rfind(b"\0", 0, dot) + 1:end - 1] for dot, end in ends}
        return sorted(name.decode() for name in found if re.fullmatch(rb"[!-~]*", name))

    @property
    def names(self):
        """Of the symbols that it has from others, or gives to them."""
        return {name.decode("latin-1") for name in self.strings.split(b"\0")}

    @property
    def has_segment(self):
        return {segment[0] for segment in self.segments}

    @property
    def executable_stack(self):
        return any(kind == GNU_STACK and flags & EXECUTE for kind, flags, *_ in self.segments)

    @property
    def n_landings(self):
        """How many times `endbr64` stands in its code: where an indirect branch may go to."""
        return sum(self.bytes[offset:offset + size].count(ENDBR64)
                   for kind, flags, offset, _, _, size, _, _ in self.segments
                   if kind == LOAD and flags & EXECUTE)


def check_paths(test, path):
    file = Elf(path)
    for folder in file.paths:
        test.assertRegex(folder, r"\A(/|\$ORIGIN/)", f"{path} looks for libraries in '{folder}'")
    for name in file.libraries:
        test.assertRegex(name, r"\A(/|[^/]*\Z)", f"{path} names a library by a relative path")


def check_hardened(test, path):
    file, name = Elf(path), str(path)
    test.assertIn(GNU_RELRO, file.has_segment, name)
    test.assertTrue(file.flags(FLAGS) & BIND_NOW, name)
    test.assertTrue(file.flags(FLAGS_1) & NOW, name)
    test.assertFalse(file.executable_stack, name)
    test.assertIn("__stack_chk_fail", file.names, name)
    is_library = path.suffix == ".so"
    if not is_library:
        test.assertTrue(file.flags(FLAGS_1) & PIE, name)
        test.assertTrue(file.names & {"__snprintf_chk", "__memcpy_chk", "__printf_chk"}, name)
    # The start files of a C library need not have it: then no note says so of the whole program.
    test.assertGreater(file.n_landings, 1 if is_library else 500, name)
