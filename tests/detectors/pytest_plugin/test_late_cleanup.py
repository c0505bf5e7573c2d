"""What a test leaves behind, and is cleaned up after its body has returned."""

import pytest


def test_what_the_body_has_scheduled_happens_in_the_test(run):
    result = run(
        """
@pytest.mark.tenure
async def test_race():
    asyncio.get_running_loop().call_soon(told.Instance().violation)
"""
    )
    result.assert_outcomes(failed=1)


def test_a_slow_cleanup_has_several_turns(run):
    result = run(
        """
async def clean_up(instance):
    for _ in range(20):
        await asyncio.sleep(0)
    instance.violation()

@pytest.mark.tenure
async def test_race():
    task = asyncio.ensure_future(clean_up(told.Instance()))
"""
    )
    result.assert_outcomes(failed=1)


CYCLE = """
class Finalized:
    def __init__(self):
        self.instance, self.cycle = told.Instance(), self

    def __del__(self):
        self.instance.violation()

@pytest.fixture(autouse=True)
def no_collector():
    gc.disable()
    yield
    gc.enable()

@pytest.mark.tenure
{what}def test_race():
    Finalized()

def test_after_it():
    pass
"""


@pytest.mark.parametrize("what", ["", "async "])
def test_what_only_the_collector_finds_is_found_in_the_test_that_left_it(run, what):
    run(CYCLE.format(what=what)).assert_outcomes(failed=1, passed=1)


def test_a_generator_in_a_cycle_is_closed_while_the_loop_still_turns(run):
    result = run(
        """
async def stream(instance):
    try:
        yield 1
    finally:
        await asyncio.sleep(0)
        instance.violation()

class Holder:
    pass

@pytest.mark.tenure
async def test_race():
    holder = Holder()
    holder.itself, holder.stream = holder, stream(told.Instance())
    async for _ in holder.stream:
        break
"""
    )
    result.assert_outcomes(failed=1)


def test_what_happens_when_the_loop_is_closed_is_an_error_of_the_teardown(run):
    result = run(
        """
async def wait(instance):
    try:
        await asyncio.Event().wait()
    finally:
        instance.violation()

@pytest.mark.tenure
async def test_race():
    asyncio.ensure_future(wait(told.Instance()))
"""
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_race*"])


def test_a_task_that_waits_for_ever_is_cancelled_and_not_collected(run):
    result = run(
        """
ended = []

async def wait():
    try:
        await asyncio.get_running_loop().create_future()
    except BaseException as error:
        ended.append(type(error).__name__)
        raise

@pytest.mark.tenure
async def test_leaves_a_task():
    told.Instance().end()
    asyncio.ensure_future(wait())
    await asyncio.sleep(0)

def test_after_it():
    assert ended == ["CancelledError"]
"""
    )
    result.assert_outcomes(passed=2)


def test_a_test_that_tells_nothing_is_left_alone(run):
    result = run(
        """
turns = []

def turn(loop):
    turns.append(None)
    loop.call_soon(turn, loop)

@pytest.mark.tenure
async def test_it():
    loop = asyncio.get_running_loop()
    loop.call_soon(turn, loop)

def test_after_it():
    assert len(turns) < 10
"""
    )
    result.assert_outcomes(passed=2)


def test_the_bodys_failure_is_what_is_reported_at_once(run):
    result = run(
        """
@pytest.mark.tenure
async def test_race():
    asyncio.get_running_loop().call_soon(told.Instance().violation)
    raise LookupError("no such thing")
"""
    )
    result.stdout.fnmatch_lines(["E       LookupError: no such thing"])


def test_methods_and_parameters_reach_an_asynchronous_body_as_ever(run):
    source = """
@pytest.fixture
def thing():
    return "thing"

@pytest.mark.tenure
class TestIt:
    @pytest.mark.parametrize("number", [1, 2])
    async def test_it(self, thing, number):
        assert (type(self).__name__, thing) == ("TestIt", "thing")
        assert number in {1, 2}
        told.Instance().end()
"""
    run(source).assert_outcomes(passed=2)
