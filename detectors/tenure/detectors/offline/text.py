"""A window over the text of a file of JSON values, which may be larger than memory.

Files of lines and files of documents are told apart value by value: a line that is a
value of its own never reaches into the next one, so that a torn line costs one line. A
document may, and one that cannot be read is left at the next line that begins another.
"""

import codecs
import re
from dataclasses import dataclass
from typing import Final, final

from tenure.detectors.offline.reading import CHUNK, Source

_BOM: Final = b"\xef\xbb\xbf"
_FIRST_PIECE: Final = 1 << 12
_GLIMPSE: Final = 1 << 16
"""How far a line end is looked for before it is decided how to read a value."""
_INDENTED: Final = 256
_UNFINISHED: Final = (b"{", b"[", b",", b":")
_FRESH: Final = re.compile(
    rb'\s*\{\s*"(?:resource_?(?:Spans|Metrics|Logs|Profiles|spans)|result|data|batches'
    rb'|trace)"'
)
"""How a line begins that is a value of its own."""


class BrokenError(Exception):
    """A value cannot be read any further; never leaves this package.

    Args:
        reason: Why, as a clause.
        line: In which line.
    """

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason, line)
        self.reason = reason
        self.line = line


class TornError(BrokenError):
    """A value ends too early: whoever wrote it did not finish.

    Args:
        line: In which line.
        where: Where in it, as the end of a clause.
    """

    def __init__(self, line: int, where: str = "") -> None:
        super().__init__(f"it ends too early{where}", line)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is held in memory, and how much is reported.

    Attributes:
        value: Bytes of one span, or of whatever else is read as a whole.
        problems: How many problems are told of each file; all are counted.
    """

    value: int = 64 << 20
    problems: int = 20


@final
class Text:
    """The text of one file: the value at hand, and what comes next as bytes.

    Between `begin` and the end of a value, `buffer` holds text of this value only if it
    stands on a line of its own; else it may hold what comes after as well.

    Args:
        source: The bytes.
        limits: How much may be held in memory.
    """

    def __init__(self, source: Source, limits: Limits) -> None:
        self._source: Final = source
        self._limits: Final = limits
        self._bytes = b""
        self._at = 0  # what of `_bytes` is in `buffer`, or gone
        self._decoder: Final = codecs.getincrementaldecoder("utf-8")()
        self._undecodable: UnicodeDecodeError | None = None
        self.buffer = ""
        self.pos = 0
        # From here on, another value is looked for if this one turns out to be torn.
        self.mark = 0
        # Invariant: the line of `buffer[_counted]`.
        self._line = 1
        self._counted = 0
        # How many characters of its line stand before `buffer`.
        self._left = 0
        self._on_a_line = False
        self._line_over = False
        self._piece = _FIRST_PIECE
        if source.peek(len(_BOM)) == _BOM:
            self._fill(len(_BOM))
            self._at = len(_BOM)

    @property
    def line(self) -> int:
        """The number of the line at `pos`, from 1."""
        self._line += self.buffer.count("\n", self._counted, self.pos)
        self._counted = self.pos
        return self._line

    def column(self, at: int | None = None) -> int:
        """Return the column of a place in `buffer`, from 1; of `pos` by default."""
        end = self.pos if at is None else at
        newline = self.buffer.rfind("\n", 0, end)
        return end - newline if newline >= 0 else self._left + end + 1

    def begin(self) -> bool:
        """Go to the next value; say whether there is one."""
        if self._rest_of_line():
            return True
        self._push_back()
        while True:
            start, self._at = self._at, _blank(self._bytes, self._at)
            ends = self._bytes.count(b"\n", start, self._at)
            if ends:
                self._line += ends
                self._left = self._at - self._bytes.rfind(b"\n", start, self._at) - 1
            else:
                self._left += self._at - start
            if self._at < len(self._bytes):
                break
            if not self._fill(1):
                return False
        self._on_a_line = not self._is_document()
        self._line_over = False
        self._piece = CHUNK if self._on_a_line else _FIRST_PIECE
        return True

    def more(self) -> bool:
        """Add text to `buffer`, dropping what is before `pos`; say whether any came.

        Raises:
            BrokenError: What comes is not UTF-8, or the value is too large.
        """
        if self._undecodable is not None:
            raise BrokenError("it is not UTF-8", self.line)
        while not self._line_over:
            piece = self._take()
            decoded = self._decode(piece)
            if decoded:
                self._drop(decoded)
                return True
            if self._undecodable is not None:
                return self.more()
            if not piece:
                break
        return False

    def grow(self) -> bool:
        """Add text until there is twice as much after `pos`, or no more.

        Returns:
            Whether any came.

        Raises:
            BrokenError: What comes is not UTF-8, or the value is too large.
        """
        wanted = 2 * (len(self.buffer) - self.pos)
        if wanted > 2 * self._limits.value:
            limit = self._limits.value / (1 << 20)
            raise BrokenError(f"one value has more than {limit:g} MiB", self.line)
        grown = False
        while len(self.buffer) - self.pos <= wanted and self.more():
            grown = True
        return grown

    def leave(self) -> None:
        """Go on behind a value that could not be read.

        That is the next line; or the same one, from `mark` on, where a writer died in
        the middle of it and its successor went on there.
        """
        self._undecodable = None
        self._decoder.reset()
        if not self._on_a_line:
            self._leave_document()
            return
        torn = self.buffer.find('{"resourceSpans"', self.mark)
        if torn >= 0:
            self.pos = torn
            return
        self.pos = len(self.buffer)
        self._drop()
        while not self._line_over and self._take():
            pass

    def _drop(self, more: str = "") -> None:
        """Forget what is before `pos`, and add `more` behind the rest."""
        line, left = self.line, self.column() - 1
        self.buffer = self.buffer[self.pos :] + more
        self.mark = max(self.mark - self.pos, 0)
        self._line, self._left = line, left
        self.pos = self._counted = 0

    # Between values.

    def _rest_of_line(self) -> bool:
        """Say whether the line at hand has another value."""
        if not self._on_a_line:
            return False
        while True:
            rest = self.buffer[self.pos :]
            if rest.strip(" \t\r\n"):
                self.pos += len(rest) - len(rest.lstrip(" \t\r\n"))
                return True
            self.pos = len(self.buffer)
            try:
                if not self.more():
                    break
            except BrokenError:
                return True  # whoever reads on meets it again, and says so
        self._drop()
        if self._line_over:  # the line end is not part of the buffer
            self._line, self._left = self._line + 1, 0
        self._on_a_line = False
        return False

    def _push_back(self) -> None:
        """Turn what was read ahead of the next value into bytes again."""
        self._drop()
        ahead = self.buffer.encode() + self._decoder.getstate()[0]
        self._decoder.reset()
        self.buffer = ""
        start = self._at - len(ahead)
        if start >= 0 and self._bytes.startswith(ahead, start):
            self._at = start  # nearly always: they are still there
        else:
            self._bytes = ahead + self._bytes[self._at :]
            self._at = 0

    def _is_document(self) -> bool:
        """Say whether the value goes on after the end of its first line."""
        width = self._bytes.find(b"\n", self._at) - self._at
        while width < 0 and len(self._bytes) - self._at < _GLIMPSE and self._fill(1):
            width = self._bytes.find(b"\n", self._at) - self._at
        if width < 0:
            return False
        first = self._bytes[self._at : self._at + width].strip()
        if first in {b"{", b"["}:
            return True
        if not first.endswith(_UNFINISHED) or not first.startswith((b"{", b"[")):
            return False
        self._fill(width + _INDENTED - len(self._bytes) + self._at)
        return not _FRESH.match(self._bytes, self._at + width)

    def _leave_document(self) -> None:
        """Go to the next line that begins with a brace or a bracket."""
        at_one = self.column() == 1 and self.buffer[self.pos : self.pos + 1] in {
            "{",
            "[",
        }
        self._push_back()
        if at_one:
            return
        while True:
            end = self._bytes.find(b"\n", self._at)
            if end < 0:
                self._at = len(self._bytes)
                if not self._fill(1):
                    return
                continue
            self._line, self._left = self._line + 1, 0
            self._at = end + 1
            if self._at == len(self._bytes):
                self._fill(1)
            if self._bytes[self._at : self._at + 1] in {b"{", b"["}:
                return

    # Bytes.

    def _fill(self, wanted: int) -> bool:
        """Read `wanted` bytes more, or all there are; say whether any came."""
        pieces: list[bytes] = []
        while wanted > 0:
            piece = self._source.read()
            if not piece:
                break
            pieces.append(piece)
            wanted -= len(piece)
        if pieces:
            self._bytes = b"".join([self._bytes[self._at :], *pieces])
            self._at = 0
        return bool(pieces)

    def _take(self) -> bytes:
        """Take the next bytes of the value at hand, without the end of its line."""
        if self._at >= len(self._bytes) and not self._fill(1):
            return b""
        end = min(self._at + self._piece, len(self._bytes))
        self._piece = min(2 * self._piece, CHUNK)
        start, self._at = self._at, end
        if not self._on_a_line:
            return self._bytes[start:end]
        newline = self._bytes.find(b"\n", start, end)
        if newline < 0:
            return self._bytes[start:end]
        self._line_over = True
        self._at = newline + 1
        return self._bytes[start:newline] or b" "

    def _decode(self, piece: bytes) -> str:
        """Decode `piece`; what comes before a wrong byte still counts."""
        try:
            return self._decoder.decode(piece, self._line_over or not piece)
        except UnicodeDecodeError as error:
            self._undecodable = error
            self._decoder.reset()
            if not self._on_a_line:
                self._bytes = error.object[error.end :] + self._bytes[self._at :]
                self._at = 0
            return error.object[: error.start].decode()


_BLANK: Final = re.compile(rb"[ \t\r\n]*")


def _blank(data: bytes, at: int) -> int:
    """Return where what is not blank begins in `data`, from `at` on."""
    match = _BLANK.match(data, at)
    return at if match is None else match.end()
