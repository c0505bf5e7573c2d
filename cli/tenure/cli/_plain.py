"""Names from a trace, made harmless: a terminal must not obey what a file says."""


def plain(text: str) -> str:
    """Return `text` with every character that does not show written as its escape.

    These are control characters, which terminals obey and XML forbids, half characters,
    which cannot be encoded, and marks that turn the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
