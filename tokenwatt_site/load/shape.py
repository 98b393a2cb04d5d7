r"""What a stream's token chunks look like, so that not each of them is parsed.

The chunks of one stream differ in their text and nowhere else. Once one was read in full, an event
that is equal to it byte for byte outside that JSON string, and holds a string of at least one
character there, reads the same: JSON ends a string at its first bare quote, and a dialect asks of
these fields only whether they are empty. Everything else is read in full.

    >>> shape = Shape.of(b'{"choices":[{"index":0,"text":" a","finish_reason":null}]}')
    >>> shape.fits(b'data: {"choices":[{"index":0,"text":" b","finish_reason":null}]}\n\n')
    True
    >>> shape.fits(b'data: {"choices":[{"index":0,"text":" b","finish_reason":"stop"}]}\n\n')
    False
"""

import re
from dataclasses import dataclass
from typing import NamedTuple, Self

_FIELD = re.compile(rb'"(?:text|content|reasoning_content|reasoning)": ?"')
# The inside of a JSON string, not empty: what JSON's and UTF-8's own grammars allow. Possessive,
# so that no text makes it go back.
TEXT = re.compile(
    rb"(?:[ !#-\[\]-\x7f]++"
    rb"|\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4})"
    rb"|[\xc2-\xdf][\x80-\xbf]"
    rb"|\xe0[\xa0-\xbf][\x80-\xbf]"
    rb"|[\xe1-\xec\xee\xef][\x80-\xbf]{2}"
    rb"|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}"
    rb"|[\xf1-\xf3][\x80-\xbf]{3}"
    rb"|\xf4[\x80-\x8f][\x80-\xbf]{2}"
    rb")++"
)


class Shape(NamedTuple):
    """One event as bytes, without the text that it carries."""

    before: bytes
    after: bytes

    @classmethod
    def of(cls, payload: bytes) -> Self | None:
        """Return the shape of an event by its data, if it has a text that can be told apart.

        The data is one line of valid JSON.
        """
        for field in _FIELD.finditer(payload):
            text = TEXT.match(payload, field.end())
            if text is not None and payload.startswith(b'"', text.end()):
                return cls(b"data: " + payload[: field.end()], payload[text.end() :] + b"\n\n")
        return None

    def example(self) -> bytes:
        """Return the data of an event of this shape."""
        return self.before[6:] + b"?" + self.after[:-2]

    def fits(self, read: bytes) -> bool:
        """Tell whether what was read is one event of this shape."""
        before, after = self
        return (
            read.startswith(before)
            and read.endswith(after)
            and TEXT.fullmatch(read, len(before), len(read) - len(after)) is not None
        )


@dataclass(slots=True)
class Trust:
    """Whether the streams of a load still take events by their shape, and what sampling found."""

    on: bool = True
    fitted: int = 0
    """Events of a known shape, in all streams: an answer alone may be too short to be sampled."""
    checked: int = 0
    """Events of a known shape that were read in full all the same."""
    wrong: int = 0
    """Those of them that meant something else. One ends it for the load."""

    def note(self, *, holds: bool) -> None:
        """Count a check."""
        self.checked += 1
        if not holds:
            self.wrong += 1
            self.on = False
