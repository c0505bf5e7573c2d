"""Strangers' text, made harmless to look at.

A key may hold escape sequences for a terminal, characters that turn the direction of
writing, or half a surrogate pair that no file can be written with.
"""

from typing import Final

LONGEST: Final = 400
"""How many characters of one text are shown."""


def visible(text: str, longest: int = LONGEST) -> str:
    """Spell out what does not print, and cut what is too long to read.

    Args:
        text: Any text.
        longest: How many of its characters are shown.

    Returns:
        Printable text on one line.
    """
    over = len(text) - longest
    if over > 0:
        text = text[:longest]
    if not text.isprintable():
        text = "".join(
            character
            if character.isprintable()
            else character.encode("unicode_escape").decode("ascii")
            for character in text
        )
    return f"{text}… ({over} more characters)" if over > 0 else text
