"""Text for numbers and names on pages."""

import math
from typing import Any

ABSENT = "–"  # Stands for a number that does not exist


def number(value: float | None, digits: int = 3) -> str:
    """Return a number as text: plain if short, else with a power of ten.

    >>> number(0.00808), number(137.07), number(2.72e-7), number(0.0), number(None)
    ('0.00808', '137', '2.72·10⁻⁷', '0', '–')
    """
    if value is None or math.isnan(value):
        return ABSENT
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        short = f"{value:#.{digits}g}" if value else "0"
        return short.rstrip(".") if "e" not in short else f"{value:.0f}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}·10{str(int(exponent)).translate(RAISED)}"


def measured(value: float | None, spread: float | None, digits: int = 3) -> str:
    r"""Return a number and its spread with equal decimals, as text that breaks before the sign.

    >>> measured(0.00905, 0.00044), measured(5.68e-5, 3.3e-6), measured(1.5, None)
    ('0.00905 ±\xa00.00044', '(5.68 ±\xa00.33)·10⁻⁵', '1.50')
    """
    if value is None or spread is None or value == 0 or math.isnan(value + spread):
        return number(value, digits)
    exponent = math.floor(math.log10(abs(value)))
    if -3 <= exponent < digits:
        places = digits - 1 - exponent
        return f"{value:.{places}f} ±\u00a0{spread:.{places}f}"
    unit, places = 10.0**exponent, digits - 1
    power = f"10{str(exponent).translate(RAISED)}"
    return f"({value / unit:.{places}f} ±\u00a0{spread / unit:.{places}f})·{power}"


RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def percent(share: float | None) -> str:
    """Return a share as a percentage; 100 % only for 1.

    >>> percent(1.0), percent(0.9999), percent(0.5), percent(None)
    ('100 %', '99.9 %', '50.0 %', '–')
    """
    if share is None or math.isnan(share):
        return ABSENT
    return "100 %" if share == 1 else f"{int(1000 * share) / 10:.1f} %"


def plural(count: int, word: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "size"), plural(3, "size")
    ('1 size', '3 sizes')
    """
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def together(value: Any) -> str:
    """Return a setting as text on one line.

    >>> together([1, 2]), together(None)
    ('1, 2', '–')
    """
    if value is None:
        return ABSENT
    if isinstance(value, list | tuple):
        return ", ".join(map(together, value))
    return str(value)
