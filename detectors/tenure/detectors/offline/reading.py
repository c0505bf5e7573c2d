"""Bytes of a file or of standard input, unpacked, in constant memory.

Nothing here raises once a source is open: what goes wrong half-way ends the bytes, and
`Source.problem` says why, so that what came before it still counts.
"""

import codecs
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Protocol, Self, cast, final

STDIN: Final = "-"
"""The name that stands for standard input."""

CHUNK: Final = 1 << 18
"""How many bytes are read, and unpacked, at a time."""

_UNPACKED: Final = 1 << 16
_GZIP: Final = b"\x1f\x8b"
_WITH_GZIP_HEADER: Final = 16 + zlib.MAX_WBITS


class Unpack(Protocol):
    """Turns packed bytes into plain ones, piece by piece."""

    def feed(self, packed: bytes) -> Iterator[bytes]:
        """Return what can be unpacked so far, in pieces of bounded size."""
        ...

    def close(self) -> Iterator[bytes]:
        """Return the rest, at the end of the bytes.

        Raises:
            EOFError: They end too early; raised after the rest.
        """
        ...


@final
class Source:
    """The plain bytes of one file, or of standard input.

    Not safe to share between threads.

    Args:
        path: A file, or `-` for standard input.
        on_progress: Called with how many bytes of the file have been read.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(
        self, path: str, on_progress: Callable[[int], object] | None = None
    ) -> None:
        self.name: Final = "standard input" if path == STDIN else path
        self._file: Final = _opened(path)
        self._owned: Final = path != STDIN
        self._on_progress: Final = on_progress
        self._pieces: Iterator[bytes] = self._all()
        self._ahead = b""
        self.problem: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._owned:
            self._file.close()

    def read(self) -> bytes:
        """Return the next bytes, at most a few `CHUNK`; none at the end."""
        if self._ahead:
            ahead, self._ahead = self._ahead, b""
            return ahead
        return self._next()

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes, or all there are, without taking them."""
        while len(self._ahead) < size:
            more = self._next()
            if not more:
                break
            self._ahead += more
        return self._ahead[:size]

    def _next(self) -> bytes:
        # An empty piece is not the end.
        return next((piece for piece in self._pieces if piece), b"")

    def _all(self) -> Iterator[bytes]:
        """Yield every piece; stop where bytes cannot be read or unpacked."""
        try:
            yield from self._unpacked()
        except OSError as error:
            self.problem = f"reading stopped: {error.strerror or error}"
        except zlib.error:
            self.problem = "its gzip data is damaged; what comes after is not read"
        except UnicodeDecodeError:
            self.problem = "its UTF-16 text is damaged; what comes after is not read"
        except EOFError as error:
            self.problem = str(error)

    def _unpacked(self) -> Iterator[bytes]:
        packed = self._packed()
        first = next(packed, b"")
        unpack = _unpacker(first)
        for piece in chain((first,), packed):
            if unpack is None:
                yield piece
            else:
                yield from unpack.feed(piece)
        if unpack is not None:
            yield from unpack.close()

    def _packed(self) -> Iterator[bytes]:
        read = 0
        while piece := self._file.read(CHUNK):
            read += len(piece)
            if self._on_progress is not None:
                self._on_progress(read)
            yield piece


def size_of(path: str) -> int | None:
    """Return the size of a regular file; `None` for what has none, or is not there."""
    if path == STDIN:
        return None
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _opened(path: str) -> BinaryIO:
    if path == STDIN:
        # Replaced streams, as in tests, need not have one.
        return cast("BinaryIO", getattr(sys.stdin, "buffer", None) or _no_input())
    try:
        return Path(path).open("rb", buffering=0)
    except ValueError as error:  # a NUL in the name
        raise OSError(None, str(error), path) from error


def _no_input() -> BinaryIO:
    return Path(os.devnull).open("rb", buffering=0)


def _unpacker(start: bytes) -> Unpack | None:
    if start.startswith(_GZIP):
        return _Gzip()
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _Utf16()
    return None


class _Member(Protocol):
    """A decompressor of zlib, whose own type has no public name."""

    def decompress(self, data: bytes, /) -> bytes: ...


@final
class _Gzip:
    """Gzip members, one after the other, as `cat a.gz b.gz` makes them."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_WITH_GZIP_HEADER)
        self._inside = True

    def feed(self, packed: bytes) -> Iterator[bytes]:
        while packed:
            if not self._inside:
                packed = packed.lstrip(b"\0")  # what tapes and disks pad with
                if not packed:
                    return
                self._member = zlib.decompressobj(_WITH_GZIP_HEADER)
                self._inside = True
            before: _Member = self._member.copy()
            try:
                # The bound keeps what unpacks to gigabytes in constant memory.
                plain = self._member.decompress(packed, _UNPACKED)
            except zlib.error:
                yield from _until_damage(before, packed)
                raise
            if plain:
                yield plain
            self._inside = not self._member.eof
            packed = (
                self._member.unconsumed_tail
                if self._inside
                else self._member.unused_data
            )

    def close(self) -> Iterator[bytes]:
        if self._inside:
            yield self._member.flush()
            if not self._member.eof:
                raise EOFError("its gzip data ends too early; the file is truncated")


def _until_damage(member: "_Member", packed: bytes) -> Iterator[bytes]:
    """Unpack byte by byte: an error takes everything of its own call with it."""
    with suppress(zlib.error):
        for at in range(len(packed)):
            yield member.decompress(packed[at : at + 1])


@final
class _Utf16:
    """UTF-16, as some shells write it when they redirect output, to UTF-8."""

    def __init__(self) -> None:
        self._decoder: Final = codecs.getincrementaldecoder("utf-16")()

    def feed(self, packed: bytes) -> Iterator[bytes]:
        yield self._decoder.decode(packed).encode()

    def close(self) -> Iterator[bytes]:
        yield self._decoder.decode(b"", final=True).encode()
