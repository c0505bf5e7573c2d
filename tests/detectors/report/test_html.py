"""The report as one HTML file: self-contained, and safe whatever a trace holds."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

from tenure.detectors.report import render_html

from .histories import HOSTILE, calm, lost_write, many, report


class Reader(HTMLParser):
    """Reads a document as a browser would: elements, and what they hold."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.held: dict[str, str] = {}
        self._open = ""
        self.feed(document)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        self._open = attributes.get("id") or tag

    def handle_data(self, data):
        self.held[self._open] = self.held.get(self._open, "") + data

    def handle_endtag(self, tag):
        self._open = ""

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def hostile() -> Reader:
    told = lost_write(
        HOSTILE, workflow=HOSTILE, instance=HOSTILE, process=HOSTILE, run_prefix=HOSTILE
    )
    return Reader(render_html(report(told, sources=(HOSTILE,))))


def test_it_refers_to_nothing_outside_itself():
    document = render_html(report(lost_write()))
    page = Reader(document)
    addresses = [
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in ("src", "href", "action", "data", "poster", "srcset")
    ]
    assert sorted(addresses) == ["#grid", "data:,"]
    assert "@import" not in document
    assert "url(" not in document
    # Names of XML vocabularies are no addresses; a script loads nothing by them.
    assert set(re.findall(r"https?://[^\"'\s<]+", document)) == {
        "http://www.w3.org/2000/svg"
    }


def test_its_policy_names_the_only_script_and_style_by_their_hashes():
    page = Reader(render_html(report(lost_write())))
    (policy,) = [
        attributes["content"]
        for attributes in page.named("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for element in ("style", "script"):
        digest = hashlib.sha256(page.held[element].encode()).digest()
        assert f"{element}-src 'sha256-{base64.b64encode(digest).decode()}'" in policy


def test_a_key_that_ends_a_script_element_stays_data():
    page = hostile()
    assert len(page.named("script")) == 2
    assert page.named("img") == []
    data = json.loads(page.held["data"])
    (keys,) = [each["keys"] for each in data["findings"] if each["victim"] == 2]
    assert keys[0].startswith("</script><script>")
    assert "\\u202e \\x1b[31m \\ud800" in keys[0]


def test_it_can_be_written_whatever_it_holds():
    told = lost_write("\ud800\u2028")
    render_html(report(told)).encode("utf-8")


def test_no_style_is_written_on_an_element_where_the_policy_would_refuse_it():
    page = Reader(render_html(report(lost_write())))
    assert [each for _, each in page.elements if "style" in each] == []
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]


def test_the_same_report_gives_the_same_document():
    assert render_html(report(many(200))) == render_html(report(many(200)))


def test_it_holds_the_raw_span_of_every_operation():
    told = calm(1)
    data = json.loads(Reader(render_html(report(told))).held["data"])
    (section,) = data["sections"]
    commit = section["rows"][2]
    attributes = section["lanes"][commit[0]]["attributes"] | commit[8]
    assert attributes["tenure.write.keys"] == ["draft"]
    assert attributes["tenure.run.id"] == "run-1"
    assert attributes["tenure.seq"] == 3
    assert commit[6:8] == [f"{1:032x}", f"{3:016x}"]


def test_numbers_that_a_script_cannot_hold_are_texts():
    told = lost_write()
    huge = [replace(told[0], seq=2**62)]
    data = json.loads(Reader(render_html(report(huge))).held["data"])
    assert str(2**62) in json.dumps(data["sections"][0]["rows"][-1])
    assert data["sections"][0]["rows"][-1][2] == str(2**62)


def test_readers_without_scripts_get_the_text():
    assert "✗ epoch 1 discards (finalizer)" in render_html(report(lost_write()))


def test_importing_it_loads_the_standard_library_and_the_vocabulary_only():
    program = "import sys, tenure.detectors.report; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    unwanted = {"anyio", "jinja2", "rich", "markupsafe", "agent_framework"}
    assert not loaded & unwanted
    assert "opentelemetry.sdk" not in done.stdout
    assert "tenure.runtime" not in done.stdout


def test_the_detectors_load_no_report_until_it_is_asked_for():
    program = "import sys, tenure.detectors; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "tenure.detectors.report" not in done.stdout.split()


def test_the_files_of_the_page_are_in_the_package():
    page = files("tenure.detectors.report") / "page"
    names = {each.name for each in page.iterdir()}
    assert {"template.html", "style.css", "page.js"} <= names


def test_ten_thousand_operations_stay_a_file_that_can_be_sent():
    document = render_html(report(many(10_000)))
    assert len(document) < 6_000_000
