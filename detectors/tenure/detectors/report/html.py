"""The report as one HTML file that needs nothing else, not even a network.

The page's own style and script are named by their hashes in its content security
policy, so that whatever a trace holds can neither run nor load anything.
"""

import base64
import hashlib
import html
import json
from functools import cache
from importlib.resources import files
from string import Template
from typing import Final

from tenure.detectors.report._payload import payload
from tenure.detectors.report._report import Report
from tenure.detectors.report.model import draw
from tenure.detectors.report.text import render_text

_SCRIPTS: Final = ("data.js", "picture.js", "grid.js", "details.js", "page.js")
_UNSAFE: Final = str.maketrans({
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
})
"""What could end a script element; escaped, it means the same in JSON."""


def render_html(report: Report) -> str:
    """Return a report as an HTML document.

    The same report always gives the same document.

    Args:
        report: What was seen and found.

    Returns:
        A document that can be encoded as UTF-8, whatever the report holds.
    """
    style, script = _part("style.css"), "".join(_part(name) for name in _SCRIPTS)
    data = json.dumps(payload(draw(report)), separators=(",", ":"))
    return Template(_part("template.html")).substitute(
        title=html.escape(f"{report.verdict.value} — tenure report"),
        policy=html.escape(_policy(style, script)),
        style=style,
        script=script,
        data=data.translate(_UNSAFE),
        text=html.escape(render_text(report)),
    )


@cache
def _part(name: str) -> str:
    return (files("tenure.detectors.report") / "page" / name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    return "; ".join((
        "default-src 'none'",
        f"style-src '{_hash(style)}'",
        f"script-src '{_hash(script)}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ))


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
