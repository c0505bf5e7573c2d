"""A graph that has changed while something was left undone, and goes on with it."""

from typing import Any

import pytest

from tenure.runtime import (
    CheckpointError,
    CheckpointMismatchError,
    DefinitionError,
    Executor,
    Store,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
    response_handler,
)


class Editor(Executor):
    """Asks whether to print, and then has it printed."""

    @handler
    async def review(self, draft: str, ctx: WorkflowContext[bytes, None]) -> None:
        ctx.set_state("draft", draft)
        await ctx.request_info(f"print {draft}?", bool)

    @response_handler
    async def decide(
        self, question: str, granted: bool, ctx: WorkflowContext[bytes, None]
    ) -> None:
        await ctx.send_message(b"page")


def printer(name: str, *, breaks: bool = False) -> Executor:
    @executor(id=name)
    async def print_page(page: bytes, ctx: WorkflowContext[None, str]) -> None:
        if breaks:
            raise RuntimeError("no paper")
        await ctx.yield_output(f"{name} printed {page.decode()}")

    return print_page


def press(
    store: Store, *printers: Executor, asker: str = "editor", **how: Any
) -> Workflow:
    editor = Editor(asker)
    builder = WorkflowBuilder("press", start=editor, store=store, **how)
    for each in printers:
        builder.add_edge(editor, each)
    return builder.build()


async def asked(store: Store) -> str:
    """Run the graph of old until its question waits; return its id."""
    result = await press(store, printer("old")).run("spring")
    [request] = result.pending_requests
    return request.request_id


async def test_answers_go_on_in_a_changed_graph_where_that_is_wanted(
    durable: Store,
) -> None:
    question = await asked(durable)
    changed = press(durable, printer("old"), printer("new"), on_graph_change="warn")
    with pytest.warns(RuntimeWarning, match=r"press/default.* of another graph"):
        result = await changed.run(responses={question: True})
    assert result.outputs == ("old printed page", "new printed page")
    assert dict(changed.state) == {"draft": "spring"}
    # From now on its checkpoints are of this graph.
    assert (await changed.resume()).outputs == ()


async def test_a_run_is_resumed_in_a_changed_graph_where_that_is_wanted(
    durable: Store,
) -> None:
    question = await asked(durable)
    with pytest.raises(Exception, match="no paper"):
        broken = press(durable, printer("old", breaks=True))
        await broken.run(responses={question: True})
    changed = press(durable, printer("old"), printer("new"), on_graph_change="warn")
    with pytest.warns(RuntimeWarning, match="of another graph"):
        result = await changed.resume()
    # The message was on its way to one of them already.
    assert result.outputs == ("old printed page",)


async def test_unless_it_is_wanted_it_is_refused_and_the_error_says_how(
    durable: Store,
) -> None:
    question = await asked(durable)
    changed = press(durable, printer("old"), printer("new"))
    with pytest.raises(CheckpointMismatchError, match='on_graph_change="warn"'):
        await changed.run(responses={question: True})
    with pytest.raises(CheckpointMismatchError):
        await changed.resume()


async def test_a_message_for_who_is_not_there_any_more_is_not_dropped(
    durable: Store,
) -> None:
    question = await asked(durable)
    with pytest.raises(Exception, match="no paper"):
        broken = press(durable, printer("old", breaks=True))
        await broken.run(responses={question: True})
    changed = press(durable, printer("new"), on_graph_change="warn")
    before = await changed.history()
    with pytest.raises(CheckpointMismatchError, match="messages wait in it for 'old'"):
        await changed.resume()
    assert await changed.history() == before


async def test_a_question_of_who_is_not_there_any_more_cannot_be_answered(
    durable: Store,
) -> None:
    question = await asked(durable)
    changed = press(durable, printer("old"), asker="chief", on_graph_change="warn")
    with (
        pytest.warns(RuntimeWarning, match="of another graph"),
        pytest.raises(CheckpointError, match="'editor', which asked, is not in"),
    ):
        await changed.run(responses={question: True})


async def test_what_waits_in_a_fan_in_is_not_given_to_another(durable: Store) -> None:
    @executor
    async def begin(word: str, ctx: WorkflowContext[str, None]) -> None:
        await ctx.send_message(word)

    class Asker(Executor):
        @handler
        async def ask(self, word: str, ctx: WorkflowContext[str, None]) -> None:
            await ctx.request_info(word, bool)

        @response_handler
        async def answered(
            self, word: str, granted: bool, ctx: WorkflowContext[str, None]
        ) -> None:
            await ctx.send_message(word)

    @executor
    async def pass_on(word: str, ctx: WorkflowContext[str, None]) -> None:
        await ctx.send_message(word)

    @executor
    async def join(words: list[str], ctx: WorkflowContext[None, list[str]]) -> None:
        await ctx.yield_output(words)

    def drawn(limit: int, **how: Any) -> Workflow:
        asker = Asker("asker")
        return (
            WorkflowBuilder("joined", start=begin, store=durable, **how)
            .add_edge(begin, asker, lambda word: len(word) < limit)
            .add_edge(begin, pass_on)
            .add_fan_in([asker, pass_on], join)
            .build()
        )

    [request] = (await drawn(10).run("a")).pending_requests
    changed = drawn(20, on_graph_change="warn")
    with pytest.raises(CheckpointMismatchError, match="fan-ins hold messages"):
        await changed.run(responses={request.request_id: True})
    answered = await drawn(10).run(responses={request.request_id: True})
    assert answered.outputs == (["a", "a"],)


async def test_only_two_policies_are_known(durable: Store) -> None:
    with pytest.raises(DefinitionError, match="on_graph_change is 'ignore'"):
        press(durable, printer("old"), on_graph_change="ignore")
