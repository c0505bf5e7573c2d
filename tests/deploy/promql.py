"""Which metrics and labels an expression of Prometheus is about.

No parser: enough of the language for the expressions of this repository. In tests/e2e
promtool parses them for good.
"""

import re
from dataclasses import dataclass, field

_MATCHER = re.compile(r"([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)\s*")
_GROUPING = re.compile(
    r"\b(by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)"
)
_SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)?\s*\{([^{}]*)\}")
_WORD = re.compile(r"(?<![\w:.])([a-zA-Z_:][\w:]*)(?!\s*\()(?![\w:])")
_KEYWORDS = {"and", "or", "unless", "offset", "bool", "by", "without", "on"}


@dataclass
class Asked:
    """What an expression asks for.

    Attributes:
        labels: For each metric, the labels it is selected by.
        grouped: Labels that results are grouped or matched by.
    """

    labels: dict[str, set[str]] = field(default_factory=dict)
    grouped: set[str] = field(default_factory=set)


def asked_by(expression: str) -> Asked:
    """Return what `expression` asks for."""
    asked = Asked()
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)
    text = re.sub(r"\[[^\]]*\]|\boffset\s+\w+", "", text)
    for _, names in _GROUPING.findall(text):
        asked.grouped |= {name.strip() for name in names.split(",") if name.strip()}
    text = _GROUPING.sub("", text)
    for name, matchers in _SELECTOR.findall(text):
        asked.labels.setdefault(name, set()).update(_MATCHER.findall(matchers))
    text = _SELECTOR.sub("", text)
    for name in _WORD.findall(text):
        if name not in _KEYWORDS:
            asked.labels.setdefault(name, set())
    return asked
