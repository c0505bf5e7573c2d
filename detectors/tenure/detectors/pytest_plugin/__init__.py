"""The pytest plugin: a test fails if a run touched what another one owned.

Installing tenure is enough. A test is watched if it is marked with `tenure`, if pytest
was started with `--tenure`, or if it asks for the fixture `tenure_detector`, which
alone only watches. The page `docs/howto/pytest.md` says what is caught, and when.

pytest imports this module at every start, so it imports next to nothing that pytest
has not loaded: what watches is loaded for the first test that is watched.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

import pytest

from tenure.detectors.pytest_plugin._options import FAIL_ON, SETTING

if TYPE_CHECKING:
    from tenure.detectors.detector import Detector
    from tenure.detectors.pytest_plugin._watch import Watch

_MARK: Final = (
    "tenure(fail_on='violation', expect=()): fail the test if a run touches what "
    "another run owns. With fail_on='warning', on warnings as well; with expect=[...], "
    "unless these anomalies and no others are found."
)
_watched: Final = pytest.StashKey["Watch"]()

__all__ = [
    "pytest_addoption",
    "pytest_configure",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "pytest_runtest_teardown",
    "tenure_detector",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--tenure` and the setting `tenure_fail_on`."""
    parser.getgroup("tenure").addoption(
        "--tenure",
        action="store_true",
        help="fail every test during which a run touches what another run owns",
    )
    parser.addini(
        SETTING,
        f"what fails a test that tenure watches: {' or '.join(FAIL_ON)}",
        default=FAIL_ON[0],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark and check the setting."""
    config.addinivalue_line("markers", _MARK)
    value = config.getini(SETTING)
    if value not in FAIL_ON:
        raise pytest.UsageError(
            f"{SETTING} = {value!r} cannot be used: say {' or '.join(FAIL_ON)}"
        )


# Innermost around what pytest itself does: what settling and a collection of garbage
# print, or warn of, belongs to the test like anything else that it does.


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """Begin to watch, before any fixture is set up."""
    if _is_watched(item):
        _begin(item)
    return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail the test for what has happened until its end."""
    watch = item.stash.get(_watched, None)
    if watch is None:
        return (yield)
    skipped: BaseException | None = None
    result = None
    try:
        with watch.settling():
            result = yield
    except pytest.skip.Exception as error:
        skipped = error
    watch.judge(complete=skipped is None)
    if skipped is not None:
        raise skipped
    return result


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail the teardown for what happens until every fixture is torn down."""
    watch = item.stash.get(_watched, None)
    if watch is None:
        return (yield)
    try:
        result = yield
    finally:
        watch.end()
    watch.judge()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what was found, and is no failure of its own, as a section."""
    report = yield
    watch = item.stash.get(_watched, None)
    if watch is not None:
        # What happens while fixtures are set up fails the call, if there is one.
        if call.when != "setup" or not report.passed:
            report.sections.extend(watch.sections())
        if call.when == "teardown":
            # Items live until the end of the session; what a test did need not.
            del item.stash[_watched]
    return report


@pytest.fixture
def tenure_detector(request: pytest.FixtureRequest) -> "Detector":
    """Return the detector that watches this test.

    A test that asks for it is watched, and judges what was found for itself unless it
    is marked, or pytest was started with `--tenure`.
    """
    return _begin(request.node).detector


def _is_watched(item: pytest.Item) -> bool:
    return (
        item.config.option.tenure
        or item.get_closest_marker("tenure") is not None
        or "tenure_detector" in getattr(item, "fixturenames", ())
    )


def _begin(item: pytest.Item) -> "Watch":
    """Return what watches `item`; it begins now unless it already has."""
    watch = item.stash.get(_watched, None)
    if watch is None:
        from tenure.detectors.pytest_plugin._watch import Watch

        watch = item.stash[_watched] = Watch(item)
    return watch
