"""Expressions over rows in the driver: conditions by polars, numbers by Arrow, whose decimals grow as Spark's do.

What would not give the very value that Spark gives raises ``NotHereError``: whole numbers that overflow, for one. What has
no form here (most functions, floating point) is evaluated by Catalyst's interpreter, all expressions over some rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from functools import reduce
from operator import and_, invert, or_
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from trickle.algebra.expr import Call, Cast, Col, Column, Expr, Lit, Opaque
from trickle.model.options import DEFAULT, Options
from trickle.model.types import BOOLEAN, DECIMAL, DOUBLE, facts_of
from trickle.tables.arrow.types import are_decimals, are_whole, arrow_facts, arrow_type, computed_type

WHOLE_DOUBLES: Final = 2**53
"""Up to this limit doubles represent every integer."""
_MAX_DIGITS: Final = 38
_WHOLE_NUMBERS: Final = 2**63
_DAYS_OF_SHORT_YEARS: Final = 10_000_000
"""Days from 1970 to a date whose year surely fits into 16 bits."""
_EXACT: Final = Context(prec=_MAX_DIGITS + 1)

DriverForm = Callable[[Opaque], "Expr | None"]
"""Returns a user's expression in the engine's own, where it has such a form."""
Evaluate = Callable[[Sequence[Opaque], pl.DataFrame], "list[pl.Series] | None"]
"""Returns the values of expressions of Spark's own for each row, None if only a job can tell."""


class NotHereError(Exception):
    """Spark must compute this part."""


def column_name(column: Column) -> str:
    """Name a column in the driver: by its id, for two columns may have one name."""
    return str(column.id)


def run(rows: pl.LazyFrame) -> pl.DataFrame:
    """Compute planned rows without optimising the plan: there are too few of them."""
    return rows.collect(optimizations=pl.QueryOptFlags.none())


class Expressions:
    """Evaluates expressions over rows in the driver."""

    def __init__(
        self, driver_form: DriverForm, options: Options = DEFAULT, evaluate: Evaluate = lambda *_: None
    ) -> None:
        """Start with a way to read users' expressions, and one to evaluate those that have no form here."""
        self._driver_form = driver_form
        self.options = options
        self._evaluate = evaluate
        # By the rows' identity; the rows are kept with the values, so that no later ones get their id.
        self._values: dict[tuple[int, int], tuple[pl.DataFrame, pl.Series]] = {}
        self._numbers: dict[tuple[int, int], tuple[pl.DataFrame, Any]] = {}
        self._masks: dict[tuple[int, int], tuple[pl.DataFrame, Expr, Any]] = {}

    def evaluate(self, exprs: Sequence[Expr], rows: pl.DataFrame) -> None:
        """Evaluate at once those of some expressions that have no form here."""
        wanted = [e for e in exprs if isinstance(e, Opaque) and self._driver_form(e) is None]
        missing = list({e.key: e for e in wanted if (id(rows), e.key) not in self._values}.values())
        if not missing:
            return
        found = self._evaluate(missing, rows)
        if found is None:
            raise NotHereError
        for expr, values in zip(missing, found, strict=True):
            self._values[id(rows), expr.key] = rows, values

    def _evaluated(self, expr: Opaque, rows: pl.DataFrame) -> pl.Series:
        self.evaluate([expr], rows)
        return self._values[id(rows), expr.key][1]

    def truth(self, expr: Expr, rows: pl.DataFrame) -> Any:
        """Return a condition's value for each row as an Arrow array: true, false or unknown."""
        whole = self.condition(expr)
        if whole is not None:
            return rows.with_columns(whole.alias("is_true")).get_column("is_true").to_arrow()
        match expr:
            case Opaque():
                form = self._driver_form(expr)
                return self._evaluated(expr, rows).to_arrow() if form is None else self.truth(form, rows)
            case Col():
                return self.number(expr, rows)
            case Lit(bool() | None as value):
                return pa.repeat(pa.scalar(value, pa.bool_()), rows.height)
            case Call(name, args, distinct=False, where=None) if name in _LOGIC:
                return _LOGIC[name](*(self.truth(a, rows) for a in args))
            case Call("if", (condition, then, otherwise)):
                return pc.if_else(self.mask(condition, rows), self.truth(then, rows), self.truth(otherwise, rows))
            case Call(name, args, distinct=False, where=None) if name in _TESTS:
                if name in _NULL_TESTS:
                    return self._is_null(name, args[0], rows)
                return self._compare(name, [self.number(a, rows) for a in args], rows)
        raise NotHereError

    def column(self, expr: Expr) -> pl.Expr | None:
        """Translate a column, a constant or a condition to polars; None for other expressions."""
        match expr:
            case Col(column):
                return pl.col(column_name(column))
            case Lit(int() as value, None) if not isinstance(value, bool):
                return pl.lit(value, pl.Int64)
            case Opaque():
                form = self._driver_form(expr)
                return None if form is None else self.column(form)
            case Call() if _is_condition(expr):
                return self.condition(expr)
        return None

    def condition(self, expr: Expr) -> pl.Expr | None:
        """Translate a condition to polars, which evaluates it in one go; None if it is not made of tests of columns alone."""
        match expr:
            case Opaque():
                form = self._driver_form(expr)
                return None if form is None else self.condition(form)
            case Call(name, args, distinct=False, where=None) if name in _LOGIC:
                parts = [self.condition(a) for a in args]
                return None if any(p is None for p in parts) else _TOGETHER[name](*parts)
            case Call(name, args, distinct=False, where=None) if name in _TESTS:
                if not all(isinstance(a, Col | Lit) for a in args):
                    return None
                if name in _COMPARISONS and not all(_is_compared(a) for a in args):
                    raise NotHereError
                return _TESTS[name](*map(_operand, args))
            case Col(column) if facts_of(column.type) is BOOLEAN:
                return pl.col(column_name(column))
            case Lit(bool() as value):
                return pl.lit(value)
        return None

    def _is_null(self, name: str, value: Expr, rows: pl.DataFrame) -> Any:
        found = self.number(value, rows)
        is_so = pc.is_null(found) if name == "isnull" else pc.is_valid(found)
        return pa.repeat(is_so, rows.height) if isinstance(is_so, pa.Scalar) else is_so

    def _compare(self, name: str, values: list[Any], rows: pl.DataFrame) -> Any:
        """Compare computed values: decimals with decimals, else of one type."""
        first = values[0].type
        if name not in _COMPARED or not all(v.type == first or are_decimals(first, v.type) for v in values):
            raise NotHereError
        found = _COMPARED[name](*values)
        return pa.repeat(found, rows.height) if isinstance(found, pa.Scalar) else found

    def passing(self, conditions: Sequence[Expr], rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return the rows for which all conditions are true."""
        whole = [self.condition(c) for c in conditions]
        if known := [w for w in whole if w is not None]:
            rows = rows.filter(*known)
        for condition, done in zip(conditions, whole, strict=True):
            if done is None:
                found = run(rows)
                rows = found.filter(pl.Series(pl.from_arrow(self.mask(condition, found)))).lazy()
        return rows

    def value(self, expr: Expr, rows: pl.DataFrame, like: str = "") -> pl.Series:
        """Return the value of an expression for each row; a decimal of the width that ``like`` says."""
        if isinstance(expr, Col):
            return rows.get_column(column_name(expr.column))
        if isinstance(expr, Opaque):
            form = self._driver_form(expr)
            return self._evaluated(expr, rows) if form is None else self.value(form, rows, like)
        if _is_condition(expr):
            return pl.Series(pl.from_arrow(self.truth(expr, rows)))
        found = self.number(expr, rows)
        if isinstance(found, pa.Scalar):
            found = pa.repeat(found, rows.height)
        if facts_of(like) is DECIMAL and are_decimals(found.type):
            found = _cast(found, _type(like))
        return pl.Series(pl.from_arrow(found))

    def number(self, expr: Expr, rows: pl.DataFrame) -> Any:
        """Return the value of an expression as an Arrow array, or as a scalar that is the same for all rows."""
        match expr:
            case Col(column):
                return self._column_values(column, rows)
            case Lit(None, Column() as like):
                return pa.scalar(None, _type_of_null(like.type))
            case Lit(value, like):
                return pa.scalar(value, _type(like.type) if like is not None else _LITERALS.get(type(value)))
            case Cast(Call("/", (dividend, divisor)), like):
                return _quotients(
                    self.number(dividend, rows),
                    self.number(divisor, rows),
                    _type(like.type),
                    self.options.driver_quotients,
                )
            case Cast(inner, like) if facts_of(like.type) is DOUBLE:
                return _as_doubles(self.number(inner, rows))
            case Call("/", (Cast(_, a) as dividend, Cast(_, b) as divisor)) if _are_doubles(a, b):
                return pc.divide(self.number(dividend, rows), self.number(divisor, rows))
            case Cast(inner, like):
                return _cast(self.number(inner, rows), _type(like.type))
            case Opaque():
                form = self._driver_form(expr)
                return _as_arrow(self._evaluated(expr, rows)) if form is None else self.number(form, rows)
            case Call("if", (condition, then, otherwise)):
                return _choose(self.mask(condition, rows), self.number(then, rows), self.number(otherwise, rows))
            case Call("coalesce", (first, Cast() as default)):
                other = self.number(default, rows)
                return pc.coalesce(_cast(self.number(first, rows), other.type), other)
            case Call(name, args, distinct=False, where=None) if name in _WHOLE_ARITHMETIC:
                return _computed(name, [self.number(a, rows) for a in args])
            case Call("try_add", (left, right)):
                return _added(self.number(left, rows), self.number(right, rows))
            case Call("least" | "greatest" as name, (left, right)):
                return _extreme(name, self.number(left, rows), self.number(right, rows))
            case Call("nonzero", (divisor,)):
                return _nonzero(self.number(divisor, rows))
            case Call("year", (date,)):
                return _years(self.number(date, rows))
            case Call("substring", (text, Lit(int() as start), Lit(int() as length))):
                found = pl.Series(pl.from_arrow(self.number(text, rows)))
                return _as_arrow(found.str.slice(start - 1, length))
        raise NotHereError

    def _column_values(self, column: Column, rows: pl.DataFrame) -> Any:
        """Return a column as an Arrow array; the sums of a group often read the same one."""
        known = self._numbers.get((id(rows), column.id))
        if known is None:
            known = self._numbers[id(rows), column.id] = rows, _as_arrow(rows.get_column(column_name(column)))
        return known[1]

    def mask(self, condition: Expr, rows: pl.DataFrame) -> Any:
        """Say for each row whether a condition is true; unknown is not. All sums of a change ask which rows go."""
        known = self._masks.get((id(rows), id(condition)))
        if known is None:
            found = pc.fill_null(self.truth(condition, rows), fill_value=False)
            known = self._masks[id(rows), id(condition)] = rows, condition, found
        return known[2]

    def look_into(self, expr: Opaque) -> Expr:
        """Return a user's expression in the engine's own."""
        form = self._driver_form(expr)
        if form is None:
            raise NotHereError
        return form


_LOGIC: Final[Mapping[str, Callable[..., Any]]] = {"and": pc.and_kleene, "or": pc.or_kleene, "!": pc.invert}
_TOGETHER: Final[Mapping[str, Callable[..., pl.Expr]]] = {"and": and_, "or": or_, "!": invert}
_COMPARISONS: Final[Mapping[str, Callable[..., pl.Expr]]] = {
    "=": lambda a, b: a == b,
    "<=>": lambda a, b: a.eq_missing(b),
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "in": lambda a, *values: reduce(lambda x, y: x | y, (a == v for v in values)),
}
_TESTS: Final[Mapping[str, Callable[..., pl.Expr]]] = {
    **_COMPARISONS,
    "isnotnull": lambda a: a.is_not_null(),
    "isnull": lambda a: a.is_null(),
    "startswith": lambda a, b: a.str.starts_with(b),
    "endswith": lambda a, b: a.str.ends_with(b),
    "contains": lambda a, b: a.str.contains(b, literal=True),
    "rlike": lambda a, b: a.str.contains(b),
}
_NULL_TESTS: Final = frozenset({"isnull", "isnotnull"})
_COMPARED: Final[Mapping[str, Callable[..., Any]]] = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "in": lambda a, *values: reduce(pc.or_kleene, (pc.equal(a, v) for v in values)),
}
_ARITHMETIC: Final[Mapping[str, Callable[..., Any]]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": lambda a, b: pc.multiply(*_fitting(a, b)),
    "negative": pc.negate,
}
_WHOLE_ARITHMETIC: Final[Mapping[str, Callable[..., Any]]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "negative": pc.negate_checked,
    "%": lambda a, b: _remainders(a, b),
}


def _computed(name: str, numbers: list[Any]) -> Any:
    """Compute with decimals, or with whole numbers of one type; an overflow is an error."""
    if are_decimals(*(n.type for n in numbers)) and name in _ARITHMETIC:
        return _ARITHMETIC[name](*numbers)
    if are_whole(numbers[0].type) and all(n.type == numbers[0].type for n in numbers):
        return _WHOLE_ARITHMETIC[name](*numbers)
    raise NotHereError


def _remainders(dividends: Any, divisors: Any) -> Any:
    """Return remainders with the sign of the dividend; what Spark does about a zero is left to it."""
    if not isinstance(divisors, pa.Scalar) or not divisors.is_valid or divisors.as_py() in (0, -1):
        raise NotHereError
    quotients = pc.divide_checked(dividends, divisors)
    return pc.subtract_checked(dividends, pc.multiply_checked(quotients, divisors))


def _years(dates: Any) -> Any:
    """Return years; beyond 32767, Arrow's wrap around."""
    if any(abs(end.as_py() or 0) > _DAYS_OF_SHORT_YEARS for end in pc.min_max(dates.cast(pa.int32())).values()):
        raise NotHereError
    return pc.year(dates).cast(pa.int32())


def _as_arrow(values: pl.Series) -> Any:
    return values.to_arrow(compat_level=pl.CompatLevel.oldest())


_EXTREMES: Final[Mapping[str, Callable[..., Any]]] = {"least": pc.min_element_wise, "greatest": pc.max_element_wise}


def _extreme(name: str, left: Any, right: Any) -> Any:
    """Choose between values; NaN, the greatest number to Spark, is not to Arrow."""
    if arrow_facts(left.type).is_floating or arrow_facts(right.type).is_floating:
        raise NotHereError
    return _EXTREMES[name](left, right)


def _added(left: Any, right: Any) -> Any:
    """Add exact numbers; Spark handles sums that do not fit."""
    if are_decimals(left.type):
        wide = pa.decimal256(left.type.precision + 1, left.type.scale)
        return pc.add(left.cast(wide), right.cast(wide)).cast(left.type)
    if not are_whole(left.type):
        raise NotHereError
    return pc.add_checked(left, right)


def _fitting(left: Any, right: Any) -> tuple[Any, Any]:
    """Return factors whose product fits: where their types are too wide for it, types as wide as their values."""
    if left.type.precision + right.type.precision < _MAX_DIGITS:
        return left, right
    return _narrowed(left), _narrowed(right)


def _narrowed(values: Any) -> Any:
    return values.cast(pa.decimal128(max(len(str(largest(values))), values.type.scale, 1), values.type.scale))


def largest(values: Any) -> int:
    """Return the greatest magnitude among decimals, in units of their last digit."""
    ends = (values,) if isinstance(values, pa.Scalar) else pc.min_max(values).values()
    found = (Decimal(end.as_py() or 0).copy_abs().scaleb(values.type.scale, _EXACT) for end in ends)
    return int(max(found))


def _are_doubles(*columns: Column) -> bool:
    return all(facts_of(column.type) is DOUBLE for column in columns)


def _is_condition(expr: Expr) -> bool:
    """Return whether an expression is true or false; a column or constant is not looked at."""
    match expr:
        case Call("if", (_, then, otherwise)):
            return _is_condition(then) or _is_condition(otherwise)
        case Call(name):
            return name in _LOGIC or name in _TESTS
    return False


def _is_compared(expr: Expr) -> bool:
    """Return whether an operand is known to compare here as in Spark."""
    match expr:
        case Col(column):
            return facts_of(column.type).is_compared
        case Lit(value):
            return value is not None
    return False


def _operand(expr: Expr) -> pl.Expr:
    match expr:
        case Col(column):
            return pl.col(column_name(column))
        case Lit(value, like) if value is not None:
            return pl.lit(value, pl.Int64 if like is None and isinstance(value, int) else _dtype(like))
    raise NotHereError


def _choose(mask: Any, then: Any, otherwise: Any) -> Any:
    if then.type != otherwise.type:
        raise NotHereError
    return pc.if_else(mask, then, otherwise)


def _quotients(dividends: Any, divisors: Any, type_: pa.DataType, max_rows: int) -> Any:
    """Divide decimals one by one, as Spark does: by zero there is no quotient, others are rounded half up, twice.

    Spark's quotients have 38 digits after the point before they get the digits of their type.
    """
    if isinstance(dividends, pa.Scalar) and not isinstance(divisors, pa.Scalar):
        dividends = pa.repeat(dividends, len(divisors))
    if isinstance(divisors, pa.Scalar) and not isinstance(dividends, pa.Scalar):
        divisors = pa.repeat(divisors, len(dividends))
    if isinstance(dividends, pa.Scalar) or not are_decimals(type_):
        raise NotHereError
    quick = _small_quotients(dividends, divisors, type_)
    if quick is not None:
        return quick
    if len(dividends) > max_rows:
        raise NotHereError
    # In units of the last digits: dividend / divisor = quotient * up / down.
    shift = _MAX_DIGITS + divisors.type.scale - dividends.type.scale
    up, down = 10 ** max(shift, 0), 10 ** max(-shift, 0)
    last = 10 ** (_MAX_DIGITS - type_.scale)
    pairs = zip(_units(dividends), _units(divisors), strict=True)
    made = [None if a is None or not b else _half_up(_half_up(a * up, b * down), last) for a, b in pairs]
    return pa.array([None if m is None else Decimal(m).scaleb(-type_.scale, _EXACT) for m in made], type_)


def _small_quotients(dividends: Any, divisors: Any, type_: pa.DataType) -> Any:
    """Divide all at once what fits into 64 bits; None if something does not.

    Rounding once is enough here: a quotient of such numbers that is not half of a last digit is not that near to it.
    """
    shift = type_.scale + divisors.type.scale - dividends.type.scale
    if shift < 0 or 2 * largest(dividends) * 10**shift + largest(divisors) >= _WHOLE_NUMBERS:
        return None
    a, b = (_whole_units(v) for v in (dividends, divisors))
    is_one = pc.and_(pc.is_valid(dividends), pc.is_valid(divisors)).to_numpy(zero_copy_only=False) & (b != 0)
    divisor = np.where(b == 0, 1, np.abs(b))
    found = np.sign(a) * np.sign(b) * ((2 * np.abs(a) * 10**shift + divisor) // (2 * divisor))
    whole = pa.array(found, mask=~is_one).cast(pa.decimal128(38, 0))
    return whole.view(pa.decimal128(38, type_.scale)).cast(type_)


def _whole_units(values: Any) -> Any:
    """Return decimals that fit into 64 bits in units of their last digit, NULL as zero."""
    whole = values.cast(pa.decimal128(38, values.type.scale)).view(pa.decimal128(38, 0))
    return pc.fill_null(whole.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)


def _units(values: Any) -> list[int | None]:
    scale = values.type.scale
    return [None if v is None else int(v.scaleb(scale, _EXACT)) for v in values.to_pylist()]


def _nonzero(divisors: Any) -> Any:
    """Leave it to Spark to fail on a zero."""
    if pc.any(pc.equal(divisors, pa.scalar(0, divisors.type))).as_py():
        raise NotHereError
    return divisors


def _half_up(dividend: int, divisor: int) -> int:
    rounded = (2 * abs(dividend) + abs(divisor)) // (2 * abs(divisor))
    return rounded if (dividend < 0) == (divisor < 0) else -rounded


def _as_doubles(values: Any) -> Any:
    if are_decimals(values.type) and values.type.scale == 0 and largest(values) <= WHOLE_DOUBLES:
        values = values.cast(pa.int64())
    if not are_whole(values.type):
        raise NotHereError
    return values.cast(pa.float64(), safe=False)


def _cast(values: Any, type_: pa.DataType) -> Any:
    """Widen a number, or narrow it if it fits; digits after the point that are too many are rounded, half up."""
    if are_decimals(values.type, type_):
        if type_.scale < values.type.scale:
            values = pc.round(values, type_.scale, round_mode="half_towards_infinity")
    elif not (_counts_whole(values.type) and (are_whole(type_) or are_decimals(type_))):
        raise NotHereError
    return values.cast(type_)


def _counts_whole(kind: pa.DataType) -> bool:
    return are_whole(kind) or (are_decimals(kind) and kind.scale == 0)


def _type_of_null(name: str) -> pa.DataType:
    """Return the type of NULLs, of which there are more than the driver computes with."""
    found = computed_type(name) or arrow_type(name)
    if found is None:
        raise NotHereError
    return found


def _type(name: str) -> pa.DataType:
    found = computed_type(name)
    if found is None:
        raise NotHereError
    return found


_LITERALS: Final[Mapping[type, pa.DataType]] = {int: pa.int64(), str: pa.large_string()}


def _dtype(like: Column | None) -> Any:
    if like is None:
        return None
    return pl.Series(pl.from_arrow(pa.array([], _type(like.type)))).dtype
