r"""An incremental decoder of server-sent events, on bytes: text is decoded only after framing.

Lines end at \n, \r\n or \r and nowhere else; U+2028 and U+0085 are text. A field may lack the
space after its colon. However a stream is cut into reads, its events are the same.

    >>> sse = SseDecoder()
    >>> sse.feed(b"data: 1\n")
    []
    >>> sse.feed(b"\ndata:2\n\n")
    [(b'', b'1'), (b'', b'2')]
"""

import re

Event = tuple[bytes, bytes]
"""The event's name, empty where it has none, and its data."""

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_LONGEST = 16 * 2**20
_OTHERS = (b"", b"id", b"retry")  # the first one is a comment's
_KEPT = 4096
_LINE = 64


class SseDecoder:
    """Turns the bytes of one stream into events as they come."""

    __slots__ = ("_buffer", "_data", "_fresh", "_held", "_name", "_skip_lf", "plain", "stray")

    def __init__(self) -> None:
        self.stray = b""
        """The first line that is of no event stream, cut: an answer may be another document."""
        self._buffer = bytearray()
        self._data: list[bytes] = []
        self._held = 0  # bytes of the data lines, and of what each takes beside them
        self._name = b""
        self._fresh = True  # no byte seen: a byte order mark may come
        self._skip_lf = False  # the last read ended in \r: a \n that follows belongs to it
        self.plain = False
        """Between events, and nothing held back: a read of whole events is split as it is."""

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that this read completes.

        Raises:
            ValueError: a line or an event of more than 16 MiB.
        """
        if self.plain and chunk.endswith(b"\n\n") and b"\r" not in chunk:
            if chunk.find(b"\n") == len(chunk) - 2 and chunk.startswith(b"data: "):
                return [(b"", chunk[6:-2])]  # one event a read: what most servers send
            events: list[Event] = []
            for block in chunk[:-2].split(b"\n\n"):
                if block.startswith(b"data: ") and b"\n" not in block:
                    events.append((b"", block[6:]))
                else:
                    for line in block.split(b"\n"):
                        self._line(line, events)
                    self._line(b"", events)
            return events
        return self._by_line(chunk)

    def close(self) -> list[Event]:
        """Return the event that the end of the stream left without its blank line, if any."""
        events: list[Event] = []
        self._line(bytes(self._buffer), events)
        self._line(b"", events)
        self._buffer.clear()
        return events

    def _by_line(self, chunk: bytes) -> list[Event]:
        events: list[Event] = []
        if not chunk:
            return events
        searched = len(self._buffer)
        self._buffer += chunk
        start = self._begin()
        if start < 0:
            return events
        while end := _LINE_END.search(self._buffer, max(start, searched)):
            self._line(bytes(self._buffer[start : end.start()]), events)
            start = end.end()
        self._skip_lf = self._buffer.endswith(b"\r")
        del self._buffer[:start]
        if len(self._buffer) > _LONGEST:
            raise self._too_long("line")
        self.plain = not (self._buffer or self._data or self._name or self._skip_lf)
        return events

    def _too_long(self, what: str) -> ValueError:
        """Return the error, with nothing held back any more."""
        self._buffer, self._data, self._held = bytearray(), [], 0
        return ValueError(f"an event stream with {what}s of more than 16 MiB")

    def _begin(self) -> int:
        """Return where the lines of the buffer start; -1 while a byte order mark may be cut off."""
        if self._skip_lf:
            self._skip_lf = False
            return 1 if self._buffer.startswith(b"\n") else 0
        if not self._fresh:
            return 0
        if len(self._buffer) < len(_BOM) and _BOM.startswith(bytes(self._buffer)):
            return -1
        self._fresh = False
        return len(_BOM) if self._buffer.startswith(_BOM) else 0

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not line:
            # The standard drops an event without data. A named one is kept: `event: error` counts.
            if self._data or self._name:
                events.append((self._name, b"\n".join(self._data)))
                self._data, self._name, self._held = [], b"", 0
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._held += len(value) + _LINE
            if self._held > _LONGEST:
                raise self._too_long("event")
        elif field == b"event":
            self._name = value
        elif field not in _OTHERS and not self.stray:
            self.stray = line[:_KEPT]
