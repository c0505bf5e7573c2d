"""Values as bytes: what goes in comes out, and only what is registered is built."""

import collections
import contextlib
import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import pickle
import uuid
import zoneinfo
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec
import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenure.runtime import CheckpointError, StateTypeError, register_state_type
from tenure.runtime._codec import check_value, decode, encode
from tenure.runtime._state_types import _by_class, _by_tag


@register_state_type
@dataclasses.dataclass(frozen=True)
class Item:
    name: str
    count: int = 1


@register_state_type
@dataclasses.dataclass(slots=True)
class Order:
    items: list[Item]
    extra: Any = None
    total: int = dataclasses.field(init=False, default=0)


@register_state_type
class Point(msgspec.Struct, frozen=True):
    x: float
    y: float


@register_state_type
class Place(NamedTuple):
    row: int
    column: int


@register_state_type
class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@register_state_type
class Rights(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


@register_state_type
class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@register_state_type
class Customer(pydantic.BaseModel):
    name: str = pydantic.Field(alias="customer-name")
    orders: list[Any] = []
    secret: str = ""

    @pydantic.field_validator("secret")
    @classmethod
    def _digest(cls, value: str) -> str:
        return value + "!"


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
)
zones = st.one_of(
    st.none(),
    st.timezones(),
    st.builds(
        datetime.timezone,
        st.timedeltas(datetime.timedelta(hours=-23), datetime.timedelta(hours=23)),
    ),
)
scalars = st.one_of(
    plain,
    st.datetimes(timezones=zones),
    st.times(timezones=st.none() | st.just(datetime.UTC)),
    st.dates(),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.uuids(),
    st.complex_numbers(allow_nan=False),
    st.builds(range, st.integers(), st.integers(), st.integers(1, 9)),
    st.sampled_from(Colour),
    st.sampled_from(Level),
    st.sampled_from([Rights.READ, Rights.READ | Rights.WRITE, Rights(0)]),
    st.builds(Point, st.floats(allow_nan=False), st.floats(allow_nan=False)),
    st.builds(Place, st.integers(), st.integers()),
    st.builds(Item, st.text(), st.integers()),
)


def _containers(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(values, max_size=4),
        st.tuples(values, values),
        st.dictionaries(st.text(), values, max_size=4),
        st.dictionaries(scalars, values, max_size=4),
        st.frozensets(scalars, max_size=4),
        st.sets(scalars, max_size=4),
        st.builds(Order, st.lists(st.builds(Item, st.text())), values),
    )


values = st.recursive(scalars, _containers, max_leaves=12)


def same(one: Any, other: Any) -> bool:
    """Say whether two values are equal, types and all, however deep."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            same(a, b) and same(one[a], other[b])
            for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Order):
        return same(
            (one.items, one.extra, one.total), (other.items, other.extra, other.total)
        )
    if isinstance(one, datetime.datetime):
        return repr(one) == repr(other)
    return one == other


@given(values)
@example(float("inf"))
@example(-0.0)
@example(10**40)
@example(-(2**63))
@example(2**64)
@example({(1, "a"): [Item("x")]})
@example({"a": {"b": 2**70}})
@example(
    datetime.datetime(
        2026, 10, 25, 2, 30, fold=1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")
    )
)
@example(complex(-0.0, math.inf))
@example({"": {"ä": "ö"}})
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    assert same(decode(encode(value, "value")), value)


@given(values)
def test_whatever_is_let_pass_can_be_written(value: Any) -> None:
    check_value(value, "value")
    encode(value, "value")


def test_what_is_not_a_number_comes_back_too() -> None:
    assert math.isnan(decode(encode(math.nan, "x")))
    assert decode(encode(decimal.Decimal("sNaN"), "x")).is_snan()


def test_a_field_that_the_constructor_does_not_take_comes_back() -> None:
    order = Order([Item("x", 2)])
    order.total = 7
    assert decode(encode(order, "x")).total == 7


def test_a_pydantic_model_comes_back_by_its_field_names_and_unvalidated() -> None:
    customer = Customer.model_validate({
        "customer-name": "Ada",
        "orders": [Order([Item("x")]), (1, 2)],
        "secret": "s",
    })
    again = decode(encode(customer, "x"))
    assert again == customer
    assert again.secret == "s!", "a validator that is not idempotent ran twice"
    assert type(again.orders[1]) is tuple


@register_state_type
class Account(pydantic.BaseModel):
    owner: str = "nobody"
    limit: int = pydantic.Field(default=0, alias="owner_limit")
    owner_limit: int = pydantic.Field(default=0, alias="limit")
    _drawn: dict[str, int] = pydantic.PrivateAttr(default_factory=dict)


def test_a_pydantic_model_comes_back_with_all_that_it_knows() -> None:
    account = Account.model_validate({"owner": "Ada", "owner_limit": 5})
    account._drawn["today"] = 3
    again = decode(encode(account, "x"))
    assert again == account
    assert (again.limit, again.owner_limit) == (5, 0)
    assert again._drawn == {"today": 3}
    assert again.model_fields_set == {"owner", "limit"}
    whole = Account(owner="Ada", limit=1, owner_limit=2)
    assert decode(encode(whole, "x")).model_fields_set == whole.model_fields_set


def test_a_private_attribute_that_cannot_be_kept_is_refused_by_name() -> None:
    account = Account()
    account._drawn = Unknown()  # type: ignore[assignment]
    with pytest.raises(StateTypeError, match=r"cart': Account\._drawn"):
        check_value(account, "state key 'cart'")


@register_state_type
class Pair(NamedTuple):
    first: int
    second: int = 0


class Twin(Pair):
    def __new__(cls, both: int) -> Self:
        return super().__new__(cls, both, both)


def test_a_named_tuple_comes_back_whatever_its_constructor_takes() -> None:
    register_state_type(Twin)
    again = decode(encode([Pair(1), Twin(2)], "x"))
    assert again == [(1, 0), (2, 2)]
    assert list(map(type, again)) == [Pair, Twin]


class Unknown:
    pass


@dataclasses.dataclass
class Unregistered:
    name: str = "x"


REFUSED = [
    Unknown(),
    Unregistered(),
    lambda: 1,
    print,
    Unknown,
    object(),
    bytearray(b"x"),
    Path("x"),
    collections.OrderedDict(a=1),
    collections.Counter("a"),
    collections.deque([1]),
    "\ud800",
    datetime.datetime(2026, 1, 1, tzinfo=type("Odd", (datetime.tzinfo,), {})()),
    iter([]),
]


@pytest.mark.parametrize("value", REFUSED, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda one: one,
        lambda one: [1, one],
        lambda one: {"a": {"b": (one,)}},
        lambda one: Order([], extra=one),
    ],
    ids=["alone", "in a list", "deep", "in a registered type"],
)
def test_a_value_that_cannot_be_kept_is_refused_by_name(value: Any, wrap: Any) -> None:
    with pytest.raises(StateTypeError) as caught:
        check_value(wrap(value), "state key 'cart'")
    assert caught.value.what.startswith("state key 'cart'")
    assert type(value).__qualname__ in caught.value.value_type


def test_an_error_says_in_which_field_of_a_registered_type_it_is() -> None:
    with pytest.raises(StateTypeError, match=r"cart': Order\.extra"):
        check_value(Order([], extra=Unknown()), "state key 'cart'")


def test_a_proxy_that_makes_up_its_class_is_refused() -> None:
    class Proxy:
        @property
        def __class__(self) -> type:  # type: ignore[override]
            return str

    with pytest.raises(StateTypeError, match="Proxy"):
        check_value(Proxy(), "x")


def test_a_subclass_of_a_plain_type_is_refused_and_not_flattened() -> None:
    class Name(str):
        __slots__ = ()

    with pytest.raises(StateTypeError, match="Name"):
        check_value(Name("x"), "x")
    with pytest.raises(StateTypeError, match="Name"):
        check_value({Name("x"): 1}, "x")


def test_a_value_that_holds_itself_is_refused() -> None:
    knot: list[Any] = []
    knot.append(knot)
    with pytest.raises(StateTypeError, match="nested too deeply"):
        check_value(knot, "x")


# Bytes that nobody here has written.

TRIGGERED: list[str] = []


class Trap:
    def __reduce__(self) -> Any:
        return TRIGGERED.append, ("pickle",)

    def __init__(self, *_: Any, **__: Any) -> None:
        TRIGGERED.append("constructor")


def ext(code: int, payload: Any) -> bytes:
    return msgspec.msgpack.encode(
        msgspec.msgpack.Ext(code, msgspec.msgpack.encode(payload))
    )


HOSTILE = [
    b"",
    b"\xc1",
    b"\x93\x01",
    pickle.dumps(Trap()),
    ext(4, ["os.system", 1, {"command": "true"}]),
    ext(4, ["builtins.eval", 1, {}]),
    ext(4, [f"{Trap.__module__}.Trap", 1, {}]),
    ext(4, ["Trap", 1, {}]),
    ext(4, ["Item", 99, {"name": "x"}]),
    ext(4, ["Item", "1", {"name": "x"}]),
    ext(4, ["Item", 1, {"nobody": "x"}]),
    ext(4, ["Item", 1, ["x"]]),
    ext(4, ["Item", 1]),
    ext(4, ["Item", 1, {"__class__": "x", "name": "y"}]),
    ext(4, ["Point", 1, {"x": 1.0}]),
    ext(4, ["Colour", 1, {"name": "__init__"}]),
    ext(4, ["Colour", 1, {"name": "GREEN"}]),
    ext(4, ["Rights", 1, {"value": "x"}]),
    ext(4, [["Item"], 1, {}]),
    ext(2, [[1]]),
    ext(2, 5),
    ext(5, [[1]]),
    ext(5, [[[1], 2]]),
    ext(6, "xyz"),
    ext(6, 5),
    ext(7, ["decimal", "five"]),
    ext(7, ["timedelta", [10**12, 0, 0]]),
    ext(7, ["timedelta", 5]),
    ext(7, ["datetime", ["2026-01-01T00:00:00", 0, "../../etc/passwd"]]),
    ext(7, ["datetime", ["2026-01-01T00:00:00", 0, "Nowhere/Land"]]),
    ext(7, ["eval", "1"]),
    ext(7, ["complex", [1]]),
    ext(42, 1),
    b"\x91" * 300_000 + b"\x01",
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_bytes_from_elsewhere_are_refused_and_run_nothing(data: bytes) -> None:
    TRIGGERED.clear()
    with pytest.raises(CheckpointError):
        decode(data)
    assert not TRIGGERED


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_and_nothing_else_happens(data: bytes) -> None:
    with contextlib.suppress(CheckpointError):
        decode(data)


@given(values, st.data())
def test_damaged_bytes_are_read_or_refused(value: Any, data: st.DataObject) -> None:
    whole = bytearray(encode(value, "x"))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CheckpointError):
        decode(bytes(whole))


# Registration.


@pytest.fixture
def registry() -> Iterator[None]:
    """Take back what a test registers."""
    before = dict(_by_class), dict(_by_tag)
    yield
    for known, kept in zip((_by_class, _by_tag), before, strict=True):
        known.clear()
        known.update(kept)


@pytest.mark.usefixtures("registry")
def test_a_tag_outlives_the_renaming_of_its_class() -> None:
    @dataclasses.dataclass
    class Old:
        n: int

    register_state_type(Old, "thing")
    written = encode(Old(1), "x")
    del _by_class[Old], _by_tag["thing"]

    @dataclasses.dataclass
    class New:
        n: int

    register_state_type(New, "thing")
    assert decode(written) == New(1)


@pytest.mark.usefixtures("registry")
def test_older_fields_are_upgraded_and_newer_ones_refused() -> None:
    @dataclasses.dataclass
    class Name:
        full: str

    register_state_type(Name, "name", version=1)
    written = encode(Name("Ada Lovelace"), "x")

    def upgrade(version: int, fields: dict[str, Any]) -> dict[str, Any]:
        assert version == 1
        first, last = fields["full"].split()
        return {"first": first, "last": last}

    @dataclasses.dataclass
    class Split:
        first: str
        last: str

    del _by_tag["name"]
    register_state_type(Split, "name", version=2)
    with pytest.raises(CheckpointError, match="pass upgrade="):
        decode(written)
    register_state_type(Split, "name", version=2, upgrade=upgrade)
    assert decode(written) == Split("Ada", "Lovelace")
    newer = encode(Split("Ada", "Lovelace"), "x")
    register_state_type(Split, "name", version=1)
    with pytest.raises(CheckpointError, match="newer code"):
        decode(newer)


@pytest.mark.usefixtures("registry")
def test_two_classes_cannot_have_one_tag_but_a_class_may_be_made_again() -> None:
    def made(name: str) -> type:
        cls = dataclasses.make_dataclass(name, [("n", int)])
        cls.__module__, cls.__qualname__ = "notebook", name
        return cls

    register_state_type(made("A"), "tag")
    again = register_state_type(made("A"), "tag")
    assert type(decode(encode(again(1), "x"))) is again
    with pytest.raises(ValueError, match="pass another tag="):
        register_state_type(made("B"), "tag")


@pytest.mark.parametrize("cls", [Unknown, int, dict, Path])
def test_what_is_not_data_cannot_be_registered(cls: type) -> None:
    with pytest.raises(TypeError, match="not a data type"):
        register_state_type(cls)


def test_a_dataclass_that_could_not_be_built_again_cannot_be_registered() -> None:
    @dataclasses.dataclass
    class Seeded:
        n: int
        seed: dataclasses.InitVar[int]

    with pytest.raises(TypeError, match="seed is an InitVar"):
        register_state_type(Seeded)


def test_a_dataclass_with_a_constructor_of_its_own_has_to_take_its_fields() -> None:
    @dataclasses.dataclass(init=False)
    class Odd:
        n: int

        def __init__(self, text: str) -> None:
            self.n = len(text)

    @dataclasses.dataclass
    class Demanding:
        n: int

        def __init__(self, n: int, factor: int) -> None:
            self.n = n * factor

    for cls in (Odd, Demanding):
        with pytest.raises(TypeError, match="its __init__ takes"):
            register_state_type(cls)

    @register_state_type
    @dataclasses.dataclass
    class Lenient:
        n: int

        def __init__(self, n: int = 0, **others: Any) -> None:
            self.n = n

    assert decode(encode(Lenient(3), "x")) == Lenient(3)


def test_a_missing_registration_is_named_when_it_is_loaded() -> None:
    with pytest.raises(CheckpointError, match=r"'Gone'.*register_state_type"):
        decode(ext(4, ["Gone", 1, {}]))


def test_fractions_and_ids_are_exact() -> None:
    for value in (
        fractions.Fraction(-1, 3),
        uuid.UUID(int=5),
        decimal.Decimal("0.10"),
        range(7, -5, -2),
    ):
        assert repr(decode(encode(value, "x"))) == repr(value)


@pytest.mark.parametrize(
    "value",
    [10**5000, range(-(10**5000)), fractions.Fraction(10**5000, 7)],
    ids=["integer", "range", "fraction"],
)
def test_numbers_may_be_longer_than_python_writes_in_decimal(value: Any) -> None:
    assert decode(encode(value, "x")) == value


def test_an_error_gives_advice_where_there_is_some() -> None:
    with pytest.raises(StateTypeError, match=r"register_state_type\(Unknown\)$"):
        check_value(Unknown(), "x")
    with pytest.raises(StateTypeError, match=r"half of a surrogate pair\)$"):
        check_value("\ud800", "x")
