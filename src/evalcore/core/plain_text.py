"""Text from outside made safe to show, and numbers, differences, intervals and shares as people read them."""

from __future__ import annotations

from unicodedata import category

ARROWS = {True: "↑", False: "↓", None: ""}
"""Whether more is better."""


def visible(text: object) -> str:
    r"""Text without anything a terminal obeys: control, bidirectional and invisible characters as escapes.

    >>> visible("\x1b[31mred\r\n")
    '\\x1b[31mred\\r\\n'
    >>> visible("日本 é")
    '日本 é'
    """
    given = str(text)
    return given if given.isprintable() else "".join(map(_shown, given))


def _shown(char: str) -> str:
    if char.isprintable() or category(char) == "Zs":
        return char
    return char.encode("unicode_escape").decode("ascii")


def shorten(text: str, most: int = 300) -> str:
    """The beginning of a text that is too long to read.

    >>> shorten("abcdef", 4), shorten("abc", 4)
    ('abc…', 'abc')
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def show_number(value: float | None, decimals: int = 4, *, none: str = "") -> str:
    """Four decimals, as lm-eval shows them; very large and very small numbers by their magnitude.

    With fewer decimals, so many digits after the first: of a large number's, some stand before the point.

    >>> show_number(0.25), show_number(123456.789), show_number(1e-7), show_number(0.0), show_number(None)
    ('0.2500', '1.235e+05', '1.000e-07', '0.0000', '')
    >>> show_number(236.4486), show_number(236.4486, 3), show_number(0.7286, 3)
    ('236.4486', '236.4', '0.729')
    """
    if value is None:
        return none
    plain = value == 0 or 0.5 * 10.0**-decimals <= abs(value) < 1e5
    before = len(str(int(abs(value)))) if plain and decimals < 4 else 1
    return f"{value:.{max(decimals + 1 - before, 0)}f}" if plain else f"{value:.3e}"


def show_difference(value: float | None, decimals: int = 4) -> str:
    """A difference, with its sign.

    >>> show_difference(0.25), show_difference(-0.25), show_difference(-0.0), show_difference(None)
    ('+0.2500', '-0.2500', '0.0000', '')
    """
    return "" if value is None else ("+" if value > 0 else "") + show_number(value or 0.0, decimals)


def show_interval(low: float | None, high: float | None, decimals: int = 4, between: str = " to ") -> str:
    """An interval, if there is one; an end that is not known is infinite.

    >>> show_interval(0.1, 0.25), show_interval(None, 0.25), show_interval(None, None)
    ('0.1000 to 0.2500', '-∞ to 0.2500', '')
    """
    if low is None and high is None:
        return ""
    return show_number(low, decimals, none="-∞") + between + show_number(high, decimals, none="∞")


def show_ends(ci: tuple[float, float] | None, decimals: int = 4) -> str:
    """An interval of a difference, with signs.

    >>> show_ends((-0.25, 0.5)), show_ends((-0.25, 0.5), 3), show_ends(None)
    ('-0.2500 to +0.5000', '-0.250 to +0.500', '')
    """
    return " to ".join(show_difference(end, decimals) for end in ci or ())


def show_p(p_value: float | None) -> str:
    """A p-value.

    >>> show_p(0.04567), show_p(0.00001), show_p(1.0), show_p(None)
    ('0.0457', '<0.0001', '1.0000', '')
    """
    return "" if p_value is None else "<0.0001" if p_value < 0.0001 else f"{p_value:.4f}"


def show_share(share: float) -> str:
    """A share in percent.

    >>> show_share(0.95), show_share(0.999)
    ('95 %', '99.9 %')
    """
    return f"{round(share * 100, 6):g} %"
