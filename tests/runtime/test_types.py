"""Annotations: which messages they take, and which may flow along an edge."""

import collections
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NewType,
    NoReturn,
    NotRequired,
    Optional,
    Protocol,
    TypedDict,
    TypeVar,
    Union,
    runtime_checkable,
)

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.runtime._types import (
    accepts,
    alternatives,
    describe,
    elements_of,
    is_plain,
    may_flow,
)

T = TypeVar("T")
CustomerId = NewType("CustomerId", str)


class Animal: ...


class Dog(Animal): ...


class Stone: ...


class Box(Generic[T]): ...


class Registry(dict[str, T]):
    """A mapping that names one type where a plain dict names two."""


class Point(TypedDict):
    x: int


class Place(TypedDict):
    at: Point
    name: NotRequired[str]


def local() -> Any:
    class Kind: ...

    class Local(TypedDict):
        kind: "Kind"

    return Local


Local = local()


class Named(Protocol):
    name: str


@runtime_checkable
class Closable(Protocol):
    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Any, object()),
        (T, object()),
        (None, None),
        (type(None), None),
        (str, "a"),
        (Animal, Dog()),
        (object, 1),
        (int | str, "a"),
        (int | None, None),
        (Literal["a", "b"], "b"),
        (Annotated[int, "positive"], 1),
        (CustomerId, CustomerId("c1")),
        (list, [1, "a"]),
        (list[int], [1, 2]),
        (list[int], []),
        (Sequence[int], (1, 2)),
        (Iterable[int], iter(["not looked at"])),
        (set[str], {"a"}),
        (dict[str, int], {"a": 1}),
        (Mapping[str, list[int]], {"a": [1]}),
        (collections.Counter[str], collections.Counter("aab")),
        (collections.defaultdict[str, int], collections.defaultdict(int, a=1)),
        (Registry[int], Registry(a=1)),
        (Box[int], Box()),
        (tuple[int, str], (1, "a")),
        (tuple[int, ...], (1, 2, 3)),
        (tuple[int, ...], ()),
        (Point, {"x": 1}),
        (Point, {"x": 1, "more": "than it says"}),
        (Place, {"at": {"x": 1}}),
        (Place, {"at": {"x": 1}, "name": "here"}),
        (list[Place], []),
        (Local, {"kind": object()}),
        (Named, object()),
        (Closable, open),
        (Callable[[int], str], str),
        (type[int], int),
        (float, 1),
        (complex, 1),
        (complex, 1.5),
        (list[float], [1, 2.5]),
    ],
)
def test_an_annotation_takes_what_it_describes(annotation: Any, value: object) -> None:
    if annotation is Closable:
        value = type("Door", (), {"close": lambda self: None})()
    assert accepts(annotation, value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (None, 0),
        (str, 1),
        (int, 1.0),
        (int, "1"),
        (float, "1"),
        (float, 1j),
        (Dog, Animal()),
        (int | str, None),
        (Literal["a"], "b"),
        (list[int], ["a"]),
        (list[int], (1,)),
        (list[int], [1, "a"]),
        (dict[str, int], {"a": "b"}),
        (dict[str, int], {1: 1}),
        (collections.Counter[str], collections.Counter([1])),
        (tuple[int, str], (1,)),
        (tuple[int, str], ("a", 1)),
        (tuple[int, ...], (1, "a")),
        (Point, [1]),
        (Point, {}),
        (Point, {"x": "1"}),
        (Place, {"at": {}}),
        (Place, {"at": {"x": 1}, "name": 3}),
        (list[Place], [{"name": "here"}]),
        (CustomerId, 1),
        (Closable, object()),
        (Box[int], Stone()),
    ],
)
def test_an_annotation_refuses_what_it_does_not_describe(
    annotation: Any, value: object
) -> None:
    assert not accepts(annotation, value)


@given(st.recursive(st.integers() | st.text(), st.lists))
def test_any_takes_every_value_and_so_does_a_type_variable(value: object) -> None:
    assert accepts(Any, value)
    assert accepts(T, value)


@given(st.one_of(st.integers(), st.text(), st.none(), st.lists(st.integers())))
def test_a_union_takes_what_one_of_its_members_takes(value: object) -> None:
    members = (int, str, None, list[int])
    assert accepts(int | str | None | list[int], value) == any(
        accepts(member, value) for member in members
    )


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        (str, str),
        (Dog, Animal),
        (Animal, Dog),
        (int | str, str),
        (str, int | str),
        (Any, int),
        (int, Any),
        (object, int),
        (T, int),
        (int, T),
        (list, list[int]),
        (list[int], Sequence[int]),
        (list[Dog], list[Animal]),
        (tuple[int, ...], tuple[int, str]),
        (dict[str, int], Mapping[str, int]),
        (Point, dict[str, int]),
        (Stone, Named),
        (Named, Stone),
        (Literal["a"], str),
        (CustomerId, str),
        (None, None),
        (int, float),
        (float, int),
        (int, complex),
        (list[int], list[float]),
        (Callable[[int], str], Callable[[str], str]),
    ],
)
def test_a_type_may_flow_where_some_value_of_it_is_taken(sent: Any, taken: Any) -> None:
    assert may_flow(sent, taken)


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        (str, int),
        (Stone, Animal),
        (int | bytes, str | Dog),
        (list[str], list[int]),
        (dict[str, int], dict[str, str]),
        (list[int], dict[str, int]),
        (None, int),
        (str, None),
        (str, float),
    ],
)
def test_a_type_does_not_flow_where_no_value_of_it_is_taken(
    sent: Any, taken: Any
) -> None:
    assert not may_flow(sent, taken)


@given(st.sampled_from([int, str, float, bool, list, dict, Animal, Dog, Stone]))
def test_what_a_class_takes_may_flow_to_it(kind: type) -> None:
    value = kind()
    assert accepts(kind, value)
    assert may_flow(type(value), kind)


@pytest.mark.parametrize(
    ("annotation", "held"),
    [
        (list, (Any,)),
        (list[str], (str,)),
        (Sequence[int], (int,)),
        (Iterable[int], (int,)),
        (Any, (Any,)),
        (object, (Any,)),
        (list[int] | None, (int,)),
        (list[int] | list[str], (int, str)),
        (tuple[int, ...], ()),
        (str, ()),
        (set[int], ()),
        (None, ()),
    ],
)
def test_a_list_annotation_tells_what_the_list_holds(
    annotation: Any, held: tuple[Any, ...]
) -> None:
    assert elements_of(annotation) == held


@pytest.mark.parametrize("annotation", [int, str, Any, None, int | str, Animal | None])
def test_plain_annotations_are_decided_by_the_class_of_a_value(annotation: Any) -> None:
    assert is_plain(annotation)


@pytest.mark.parametrize(
    "annotation", [list[int], Literal["a"], int | list[str], T, Closable, Point]
)
def test_other_annotations_need_the_value_itself(annotation: Any) -> None:
    assert not is_plain(annotation)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (str, "str"),
        (None, "None"),
        (type(None), "None"),
        (list[int], "list[int]"),
        (int | str, "int | str"),
        (str | None | int, "int | str | None"),
        (Optional[Animal], "Animal | None"),  # noqa: UP045 - as some write it
        (Union[str, int], "int | str"),  # noqa: UP007 - as some write it
        (list[str | int], "list[int | str]"),
        (typing.List[str | int], "list[int | str]"),  # noqa: UP006 - as some write it
        (dict[str, list[int | None]], "dict[str, list[int | None]]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (Annotated[int, object()], "int"),
        (Literal["b", "a"], "Literal['a', 'b']"),
        (Callable[[int], str], "Callable[[int], str]"),
        (T, "~T"),
        (Any, "Any"),
        (Literal["a"], "Literal['a']"),
        (Animal, "Animal"),
    ],
)
def test_annotations_are_described_as_people_write_them(
    annotation: Any, text: str
) -> None:
    assert describe(annotation) == text


def test_a_union_has_alternatives_and_everything_else_is_its_own() -> None:
    assert alternatives(int | None) == (int, type(None))
    assert alternatives(list[int]) == (list[int],)
    assert alternatives(NoReturn) == (NoReturn,)
