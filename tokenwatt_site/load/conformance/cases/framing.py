"""How events are framed and cut into reads. None of it may change what the stream says."""

from tokenwatt_site.load.conformance.case import CHOICES, Case, Truth
from tokenwatt_site.load.conformance.script import (
    FIRST_S,
    GAP_S,
    LAST_S,
    Body,
    Script,
    rewritten,
    sent,
    tokens,
)
from tokenwatt_site.load.conformance.writer import DONE, Writer

COMMENT = b": keep-alive\n\n"


def _comments(writer: Writer) -> Script:
    whole: Body = [(t, COMMENT + piece + b":\n\n") for t, piece in writer.whole()]
    return sent([(0.1, COMMENT), (0.2, b":\n\n"), *whole])


def _fields(writer: Writer) -> Script:
    lines = b"id: 1\nretry: 100\ndata: "
    return rewritten(writer.whole(), lambda body: body.replace(b"data: ", lines))


def _several_a_read(writer: Writer) -> Script:
    (_, first), *others = writer.whole()
    rest = b"".join(piece for _, piece in others)
    return sent([(t, piece.replace(b"\n", b"\r\n")) for t, piece in [(0.3, first), (0.65, rest)]])


def _two_events_a_read(writer: Writer) -> Script:
    token = writer.token()
    pairs = [token + token] * 3
    return sent(tokens(token, *pairs, writer.last(), gap_s=2 * GAP_S))


def _split_character(writer: Writer) -> Script:
    """Cut each token's event in the middle of a character; it ends 10 ms before the next."""
    body: Body = []
    for i, piece in enumerate([writer.token("é")] * 7 + [writer.last(text="é")]):
        place, t_s = piece.index("é".encode()) + 1, FIRST_S + GAP_S * i
        body += [(t_s - GAP_S / 2, piece[:place]), (t_s, piece[place:])]
    return sent(body)


def _separators(writer: Writer) -> Script:
    text = "a\u2028b\u0085c\u2029d\x0be\x0cf\x1cg"
    return sent(tokens(*[writer.token(text)] * 7, writer.last(text=text)))


def _split_line_end(writer: Writer) -> Script:
    """Cut between the two characters of a CRLF."""
    body: Body = []
    for t_s, piece in writer.whole():
        whole = piece.replace(b"\n", b"\r\n")
        body += [(t_s, whole[:-1]), (t_s + GAP_S / 2, whole[-1:])]
    return sent(body)


FRAMING = (
    Case("plain", "one event a token, usage at the end, [DONE]", lambda w: sent(w.whole())),
    Case("comments", "comments such as ': keep-alive' before and between the events", _comments),
    Case(
        "no-space",
        "'data:' without the space after the colon",
        lambda w: rewritten(w.whole(), lambda body: body.replace(b"data: ", b"data:")),
    ),
    Case("other-fields", "id and retry lines beside data", _fields),
    Case(
        "event-name",
        "each event is named 'message'",
        lambda w: rewritten(
            w.whole(), lambda body: body.replace(b"data: ", b"event: message\ndata: ")
        ),
        apis=CHOICES,
    ),
    Case(
        "name-after-data",
        "the line with the event's name comes after its data",
        lambda w: rewritten(w.whole(), lambda body: body.replace(b"\n\n", b"\nevent: message\n\n")),
        apis=CHOICES,
    ),
    Case(
        "crlf",
        "lines end in CR LF",
        lambda w: rewritten(w.whole(), lambda body: body.replace(b"\n", b"\r\n")),
    ),
    Case(
        "cr",
        "lines end in CR alone",
        lambda w: rewritten(w.whole(), lambda body: body.replace(b"\n", b"\r")),
    ),
    Case(
        "crlf-cut",
        "lines end in CR LF, and the last LF of an event comes 25 ms after its CR",
        _split_line_end,
        Truth(end_s=LAST_S + GAP_S / 2),
    ),
    Case("bom", "a byte order mark first", lambda w: sent([(0.2, b"\xef\xbb\xbf"), *w.whole()])),
    Case(
        "crlf-several-a-read",
        "lines end in CR LF; seven of eight events come in one read",
        _several_a_read,
        Truth(tpot_s=None, coalesced=True),
    ),
    Case(
        "two-events-a-read",
        "two events in each read, 100 ms apart",
        _two_events_a_read,
        Truth(tpot_s=0.40 / 7, end_s=0.70),
    ),
    Case("split-utf8", "each token's event is cut inside a character", _split_character),
    Case(
        "line-separators",
        "U+2028, U+2029, U+0085, VT, FF and FS inside the text, which end no line",
        _separators,
    ),
    Case(
        "no-last-blank-line",
        "the stream ends with 'data: [DONE]' and no line end",
        lambda w: sent(tokens(*[w.token()] * 7, w.last().removesuffix(DONE) + DONE.rstrip())),
        apis=CHOICES,
    ),
)
