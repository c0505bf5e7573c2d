"""What kind of bytes a file holds, told from how it begins; its name says nothing.

Pure: it reads the first bytes and nothing else.
"""

from enum import StrEnum
from typing import Final

HEAD: Final = 4096
"""How many bytes at the start it takes."""


class Encoding(StrEnum):
    """How a file is written."""

    JSON = "JSON"
    """Values of JSON, one after the other, on lines or not."""

    PROTOBUF = "OTLP protobuf"
    """One message of OTLP, or several that were joined."""

    FRAMED_PROTOBUF = "OTLP protobuf, framed"
    """Messages behind their sizes, as the collector's file exporter writes them."""

    DELIMITED_PROTOBUF = "OTLP protobuf, delimited"
    """Messages behind their sizes, as protobuf libraries write several of them."""


class UnrecognisedError(Exception):
    """Nothing that is known begins so; never leaves this package.

    Args:
        reason: What it seems to be, as a clause.
        empty: Whether there is nothing at all.
    """

    def __init__(self, reason: str, *, empty: bool = False) -> None:
        super().__init__(reason, empty)
        self.reason = reason
        self.empty = empty


def recognise(head: bytes) -> Encoding:
    """Say how a file is written.

    Args:
        head: Its first `HEAD` bytes, or all of them if there are less.

    Returns:
        The encoding.

    Raises:
        UnrecognisedError: None that is known.
    """
    _refuse(head)
    text = head.removeprefix(_BOM).lstrip(_SPACE)
    # Text of JSON has no control characters but white space; in a trace of protobuf the
    # length of a trace id is one.
    if not _CONTROLS.intersection(head):
        if text.startswith(b"<"):
            raise UnrecognisedError("it is HTML or XML")
        # Whatever else it begins with: a torn first line must not hide the others.
        return Encoding.JSON
    found = _protobuf(head)
    if found is not None:
        return found
    if text[:1] in {b"{", b"["}:
        return Encoding.JSON
    raise UnrecognisedError("it is neither JSON nor OTLP protobuf, gzipped or not")


def _refuse(head: bytes) -> None:
    if not head:
        raise UnrecognisedError("it is empty", empty=True)
    for magic, reason in _REFUSED:
        if head.startswith(magic):
            raise UnrecognisedError(reason)
    if head[4:8] == _ZSTANDARD:  # the collector packs each message, behind its size
        raise UnrecognisedError(_PACKED.format("zstandard"))


def _protobuf(head: bytes) -> Encoding | None:
    if _begins_a_message(head, len(head)):
        return Encoding.PROTOBUF
    framed = int.from_bytes(head[:4], "big")
    if _begins_a_message(head[4:], framed):
        return Encoding.FRAMED_PROTOBUF
    delimited, width = varint(head)
    if width and _begins_a_message(head[width:], delimited):
        return Encoding.DELIMITED_PROTOBUF
    return None


def _begins_a_message(data: bytes, size: int) -> bool:
    """Say whether `data` begins with resource spans, whose own first field is theirs.

    Args:
        data: The first bytes of the message.
        size: How long it is said to be.
    """
    if not data.startswith(b"\x0a"):  # field 1, with a length
        return False
    length, width = varint(data[1:])
    inner = data[1 + width : 2 + width]
    # Resource, scope spans, schema URL; or a message with nothing in it.
    return bool(width) and (inner in _INNER or (length == 0 and size <= 2))


def varint(data: bytes) -> tuple[int, int]:
    """Return the number at the start of `data` and its width; width 0 if it has none.

    Args:
        data: At least ten bytes, or all there are.
    """
    value = 0
    for at, byte in enumerate(data[:10]):
        value |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            return value, at + 1
    return 0, 0


_BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = b" \t\r\n"
_CONTROLS: Final = frozenset(set(range(0x20)) - set(_SPACE))
_INNER: Final = frozenset({b"\x0a", b"\x12", b"\x1a"})
_PACKED: Final = "it is packed with {}; unpack it first (only gzip is read as it is)"
_ZSTANDARD: Final = b"\x28\xb5\x2f\xfd"
_REFUSED: Final = (
    (_ZSTANDARD, _PACKED.format("zstandard")),
    (b"PK\x03\x04", _PACKED.format("zip")),
    (b"BZh", _PACKED.format("bzip2")),
    (b"\xfd7zXZ\x00", _PACKED.format("xz")),
    (b"\x1f\x8b", _PACKED.format("gzip twice")),
    (b"SQLite format 3\x00", "it is a database of SQLite"),
    (b"PAR1", "it is Parquet"),
)
