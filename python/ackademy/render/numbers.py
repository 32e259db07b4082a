"""Numbers as text, the same in the terminal and in the report."""

from __future__ import annotations

import math

from ackademy.stats.intervals import Interval

NONE = "–"
"""what stands where there is no number"""
LOPSIDED = 0.2
"""a value farther from its interval's middle than a tenth of its width: both ends are shown"""


def significant(value: float, digits: int = 4) -> str:
    """A number with so many significant digits; a power of ten where zeros would pile up."""
    if math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0.0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".split("e")[1])  # after rounding
    if exponent < -3 or exponent > 6:
        mantissa, power = f"{value:.{max(digits - 2, 0)}e}".split("e")
        text = f"{mantissa}e{int(power)}"
    else:
        text = f"{value:.{max(digits - 1 - exponent, 0)}f}"
    return text.replace("-", "−")


def with_interval(interval: Interval, digits: int = 4) -> str:
    """A value and half its interval, or both ends where it is not in the middle.

    The interval is left out where there is none: for one run, or runs that show no spread.
    """
    value = significant(interval.value, digits)
    rounding = 1e-9 * abs(interval.value)
    if math.isnan(interval.low) or interval.half_width <= rounding:
        return value
    if abs(interval.high + interval.low - 2.0 * interval.value) > LOPSIDED * interval.half_width:
        return f"{value} [{significant(interval.low, 2)}, {significant(interval.high, 2)}]"
    return f"{value} ± {significant(interval.half_width, 2)}"


def counted(n_runs: int, n_invalid: int, *, is_fixed: bool = False) -> str:
    """How many runs a mean is of, and how many it leaves out, or that one run is all there is."""
    if is_fixed:
        return "1: deterministic"
    return f"{n_runs} + {n_invalid} invalid" if n_invalid else str(n_runs)


def runs_told(n_runs: int, n_invalid: int = 0, *, is_fixed: bool = False) -> str:
    """As `counted`, with the word for runs."""
    if is_fixed:
        return "1 run: deterministic"
    runs = counted(n_runs, n_invalid)
    return f"{runs} run{'' if runs == '1' else 's'}"


def without_runs(n_invalid: int) -> str:
    """What stands where no run counts."""
    return "invalid" if n_invalid else "failed"


def percent(ratio: float, digits: int = 1) -> str:
    """A signed part in per cent."""
    if math.isnan(ratio):
        return NONE
    if abs(ratio) >= 9.995:
        return f"× {significant(ratio + 1.0, 3)}"
    return f"{100.0 * ratio:+.{digits}f} %".replace("-", "−")


def percent_with_interval(interval: Interval) -> str:
    """A signed part in per cent and half its interval, where it has one."""
    half = interval.half_width
    if not math.isfinite(half) or abs(interval.value) >= 9.995 or half <= 0.0:
        return percent(interval.value)
    return percent(interval.value).replace(" %", f" ± {100.0 * half:.1f} %")


def plain(value: float) -> str:
    """A tick label: no digit that is not needed."""
    return f"{value:g}".replace("-", "−")


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers inside a range, about as many as wanted; 1, 2 or 5 times a power of ten."""
    if not high > low:
        return [low]
    raw = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= raw)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten inside a range above 0; twice and five times them too where they are few.

    Where even these are fewer than three, round numbers at equal distances.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if len(powers) <= 4 else (1,)
    found = [round(factor * 10.0**power, 12) for power in powers for factor in factors]
    inside = [value for value in found if low <= value <= high]
    return inside if len(inside) > 2 else ticks(low, high)


def even_ticks(reach: float) -> list[float]:
    """Zero and a round number on both sides of it, near the ends of the axis."""
    power = 10.0 ** math.floor(math.log10(reach))
    factors = (0.8, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
    step = max(factor * power for factor in factors if factor * power <= 0.92 * reach)
    return [-step, 0.0, step]


def padded(low: float, high: float) -> tuple[float, float]:
    """A range with some room on both sides, and no narrower than a twentieth of its middle.

    Without that floor, differences that mean nothing would fill the chart.
    """
    middle = 0.5 * (low + high)
    half = max(0.58 * (high - low), 0.025 * abs(middle)) or 1.0
    return middle - half, middle + half
