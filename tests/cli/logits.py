"""Base-logits files in memory: read, changed, written. What tests plant differences with."""
import array
import math
import struct

MAX_CODE = 65535


class Logits:
    """ids, and a record for each scored position of each window: ln of all probabilities."""

    def __init__(self, data):
        assert data[:8] == b"_logits_"
        self.n_ctx, self.n_vocab, self.n_windows = struct.unpack_from("<3i", data, 8)
        self.n_scored = self.n_ctx - 1 - self.n_ctx // 2
        n_ids = self.n_ctx * self.n_windows
        self.ids = array.array("i", data[20:20 + 4 * n_ids])
        n_codes = self.n_vocab + 4 + self.n_vocab % 2
        at, self.rows = 20 + 4 * n_ids, []
        for _ in range(self.n_windows * self.n_scored):
            scale, floor = struct.unpack_from("<2f", data, at)
            codes = array.array("H", data[at + 8:at + 8 + 2 * self.n_vocab])
            self.rows.append([scale * code + floor for code in codes])
            at += 2 * n_codes
        assert at == len(data)

    def bytes(self):
        parts = [b"_logits_", struct.pack("<3i", self.n_ctx, self.n_vocab, self.n_windows),
                 self.ids.tobytes()]
        for row in self.rows:
            most = max(row)
            floor = max(min(row), most - 16)
            scale = (most - floor) / MAX_CODE
            scale, floor = struct.unpack("<2f", struct.pack("<2f", scale, floor))
            codes = [min(max(round((x - floor) / scale), 0), MAX_CODE) for x in row]
            parts.append(struct.pack("<2f", scale, floor))
            parts.append(array.array("H", codes + [0] * (self.n_vocab % 2)).tobytes())
        return b"".join(parts)

    def changed(self, change):
        """Another one: change(row, window, i) gives logits, which are divided by their sum."""
        other = Logits.__new__(Logits)
        other.__dict__.update(self.__dict__)
        other.rows = []
        for r, row in enumerate(self.rows):
            logits = change(row, r // self.n_scored, r % self.n_scored)
            most = max(logits)
            log_sum = most + math.log(math.fsum(math.exp(x - most) for x in logits))
            other.rows.append([x - log_sum for x in logits])
        return other


def divergence(p, q):
    """KL(p || q) of two rows of logarithms."""
    return math.fsum(math.exp(a) * (a - b) for a, b in zip(p, q))
