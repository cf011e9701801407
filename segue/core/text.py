"""Text that came from anywhere: made safe to store, and made safe to print.

`storable` keeps everything a database can hold; `printable` keeps only what a terminal may be shown.
"""

import re
import unicodedata

_SURROGATES = re.compile("[\ud800-\udfff]")

# Whole escape sequences (CSI; OSC, DCS and their kin; two-character ones), so that no parameters are left over.
_ESCAPES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|\x1b[\\]PX^_][^\x00-\x07\x0e-\x1f\x7f-\x9f]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-~]"
)
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # bidi marks, overrides and isolates, and what shapes digits
    "\ufff9-\ufffb"  # what hides notes between the lines
    "\U000e0000-\U000e007f]"  # tag characters
)
_UNSAFE_IN_JSON = re.compile(_UNPRINTABLE.pattern + "|[\u2028\u2029]")  # the two would end a line for some readers
_LINE_ENDS = re.compile("\r\n|[\r\u0085\u2028\u2029]")
_SPACES = re.compile(r"\s+")

_SKIN_TONES = "".join(map(chr, range(0x1F3FB, 0x1F400)))
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))

REPLACEMENT = "\ufffd"
NUL_SIGN = "\u2400"
ELLIPSIS = "…"


def storable(text: str) -> str:
    """The same text with what no database can hold replaced: lone surrogates and NUL."""
    if "\x00" in text:
        text = text.replace("\x00", NUL_SIGN)
    return text if text.isascii() else _SURROGATES.sub(REPLACEMENT, text)


def printable(text: str) -> str:
    """The text without anything that could steer a terminal. Of the control characters, newline and tab are left."""
    if text.isprintable():
        return text
    text = _LINE_ENDS.sub("\n", text)
    return storable(_UNPRINTABLE.sub("", _ESCAPES.sub("", text)))


def escaped(json_text: str) -> str:
    r"""JSON with every character that could steer a terminal written as `\uXXXX`, which means the same."""
    return json_text if json_text.isprintable() else _UNSAFE_IN_JSON.sub(_escape, json_text)


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def one_line(text: str) -> str:
    """The printable text with every run of white space made one space."""
    return _SPACES.sub(" ", printable(text)).strip()


def cut(text: str, most: int) -> str:
    """The beginning of the text, at most that many characters, and never half of what is read as one."""
    if len(text) <= most:
        return text
    end = max(most, 0)
    while end > 0 and _is_inside(text, end):
        end -= 1
    return text[:end]


def shorten(text: str, most: int) -> str:
    """The same, with an ellipsis as the last character when something was cut."""
    return text if len(text) <= most else cut(text, most - len(ELLIPSIS)).rstrip() + ELLIPSIS


def _is_inside(text: str, at: int) -> bool:
    """Whether a cut there would split an emoji, a flag or a letter from its marks."""
    before, after = text[at - 1], text[at]
    if "\u200d" in (before, after) or after in _SKIN_TONES or unicodedata.category(after) in ("Mn", "Me", "Mc"):
        return True
    if after not in _FLAG_LETTERS:
        return False
    return (at - len(text[:at].rstrip(_FLAG_LETTERS))) % 2 == 1  # flags are pairs of letters


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 session`, `12 sessions`, `2 processes`."""
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{ending}"


def size(number: float) -> str:
    """A number of bytes as people say it: `512 bytes`, `23.6 kB`, `1.2 MB`."""
    if number < 1000:
        return count(int(number), "byte")
    units = iter(("kB", "MB", "GB", "TB"))
    unit = next(units)
    number /= 1000
    while number >= 999.95 and (larger := next(units, "")):
        number, unit = number / 1000, larger
    return f"{number:.1f} {unit}"
