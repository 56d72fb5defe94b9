"""What the fields of a node say about it: its inputs and its expressions.

A field declared as ``Plan`` or ``tuple[Plan, ...]`` is an input, one that holds expressions is evaluated over the inputs.
So walking, rebuilding and checking need no list of the kinds of node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, ClassVar, Final, cast, get_args, get_origin, get_type_hints

from trickle.algebra.expr import WEIGHT, Call, Cast, Col, Column, Expr, KeyPair, Lit, Opaque, Output

_EXPRS: Final = (Opaque, Col, Lit, Call, Cast)
ASIDE: Final[Mapping[str, bool]] = {"aside": True}
"""Marks a field with a plan that is not an input: it runs by itself."""


class Plan:
    """A node, with the ``columns`` of its result and the ``inputs`` it reads.

    Attributes:
        by_position: True if it reads its inputs' columns by position, so that none of them may be left out.
        is_linear: True if it treats each row by itself, so that its change is what it makes of the change.
    """

    __slots__ = ()
    by_position: ClassVar[bool] = False
    is_linear: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check references: an expression may read the columns of any input."""
        if shape_of(type(self)).exprs:
            check_refs(self, self.exprs, self.inputs)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the result, in order."""
        raise NotImplementedError

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The nodes read, in the order of the fields."""
        return shape_of(type(self)).read_inputs(self)

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The expressions evaluated over the inputs, in the order of the fields."""
        found: list[Expr] = []
        for name in shape_of(type(self)).exprs:
            _collect_exprs(getattr(self, name), found)
        return tuple(found)

    @property
    def reads(self) -> frozenset[int]:
        """The ids of the columns that its expressions read."""
        return frozenset[int]().union(*(e.refs for e in self.exprs))

    @property
    def ids(self) -> frozenset[int]:
        """The ids of the columns."""
        return frozenset(c.id for c in self.columns)

    @property
    def is_change(self) -> bool:
        """True if rows carry a weight."""
        columns = self.columns
        return bool(columns) and columns[-1] == WEIGHT

    def has_no_rows_over(self, empty: Sequence[bool]) -> bool:
        """Return whether the result has no rows, given whether each input has none."""
        return all(empty)


class OneInput(Plan):
    """A node over one ``child``, with the child's columns unless it says otherwise."""

    __slots__ = ()
    child: Plan

    @property
    def columns(self) -> tuple[Column, ...]:
        """As the child."""
        return self.child.columns


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of a kind of node.

    Attributes:
        inputs: The fields that hold inputs, each with whether it holds several.
        exprs: The fields that hold expressions.
        read_inputs: Reads the inputs of a node. Plans are walked often, so it is chosen once for each kind.
    """

    inputs: tuple[tuple[str, bool], ...]
    exprs: tuple[str, ...]
    read_inputs: Callable[[Plan], tuple[Plan, ...]]


_SHAPES: Final[dict[type[Plan], Shape]] = {}


def shape_of(kind: type[Plan]) -> Shape:
    """Return the shape of a kind of node, by the declared types of its fields; computed once."""
    known = _SHAPES.get(kind)
    if known is None:
        known = _SHAPES[kind] = _find_shape(kind)
    return known


def _find_shape(kind: type[Plan]) -> Shape:
    hints = get_type_hints(kind)
    inputs: list[tuple[str, bool]] = []
    exprs: list[str] = []
    for one in fields(cast("Any", kind)):
        hint = hints[one.name]
        if one.metadata == ASIDE:
            continue
        if _is_plan(hint):
            inputs.append((one.name, False))
        elif get_origin(hint) is tuple and _is_plan(get_args(hint)[0]):
            inputs.append((one.name, True))
        elif _holds(hint, _is_plan):
            message = f"{kind.__name__}.{one.name}: an input is declared as Plan or tuple[Plan, ...], not as {one.type}"
            raise TypeError(message)
        elif _holds(hint, _is_expr):
            exprs.append(one.name)
    return Shape(tuple(inputs), tuple(exprs), _inputs_reader(tuple(inputs)))


def _inputs_reader(inputs: tuple[tuple[str, bool], ...]) -> Callable[[Plan], tuple[Plan, ...]]:
    match inputs:
        case ():
            return lambda _: ()
        case ((name, False),):
            read = attrgetter(name)
            return lambda node: (read(node),)
        case ((name, True),):
            return attrgetter(name)
        case _ if not any(is_many for _, is_many in inputs):
            return attrgetter(*(name for name, _ in inputs))
    return lambda node: tuple(
        p for name, many in inputs for p in (getattr(node, name) if many else (getattr(node, name),))
    )


def _is_plan(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Plan)


def _is_expr(hint: Any) -> bool:
    return hint in (*_EXPRS, Output, KeyPair)


def _holds(hint: Any, test: Callable[[Any], bool]) -> bool:
    return test(hint) or any(_holds(part, test) for part in get_args(hint))


def _collect_exprs(value: object, found: list[Expr]) -> None:
    match value:
        case Output():
            found.append(value.expr)
        case tuple():
            for part in value:
                _collect_exprs(part, found)
        case Opaque() | Col() | Lit() | Call() | Cast():
            found.append(value)
        case KeyPair():
            found += (value.left, value.right)


def check_refs(node: Plan, exprs: Iterable[Expr], inputs: Iterable[Plan]) -> None:
    """Refuse to build a node whose expressions read columns that no input has."""
    have = frozenset[int]().union(*(p.ids for p in inputs))
    for expr in exprs:
        if not expr.refs <= have:
            missing = sorted(expr.refs - have)
            message = f"{type(node).__name__}: {expr} reads column ids {missing} that its input does not give"
            raise ValueError(message)
