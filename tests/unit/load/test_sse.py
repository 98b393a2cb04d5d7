import pytest

from tokenwatt_site.load.sse import SseDecoder


def events(*reads: bytes) -> list[tuple[bytes, bytes]]:
    decoder = SseDecoder()
    found = [event for read in reads for event in decoder.feed(read)]
    return found + decoder.close()


def test_an_event_ends_with_a_blank_line() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: 1\n") == []
    assert decoder.feed(b"\n") == [(b"", b"1")]


def test_lines_end_at_lf_crlf_and_cr() -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        assert events(b"data: 1" + end + end + b"data: 2" + end + end) == [(b"", b"1"), (b"", b"2")]


def test_a_crlf_cut_between_its_bytes_is_one_line_end() -> None:
    assert events(b"data: 1\r", b"\n", b"\r", b"\ndata: 2\r\n\r\n") == [(b"", b"1"), (b"", b"2")]


def test_an_event_is_out_as_soon_as_its_last_cr_is_there() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: 1\r\n\r") == [(b"", b"1")]
    assert decoder.feed(b"\n") == []


def test_an_empty_read_changes_nothing() -> None:
    assert events(b"data: 1\r", b"", b"\n", b"", b"\n") == [(b"", b"1")]


def test_unicode_line_separators_are_text() -> None:
    text = "a\u2028b\u0085c\u2029d\x0be".encode()
    assert events(b"data: " + text + b"\n\n") == [(b"", text)]


def test_the_space_after_the_colon_is_optional_and_only_one_is_dropped() -> None:
    assert events(b"data:1\n\ndata:  2\n\n") == [(b"", b"1"), (b"", b" 2")]


def test_data_lines_are_joined() -> None:
    assert events(b"data: {\ndata: }\n\n") == [(b"", b"{\n}")]


def test_comments_ids_and_unknown_fields_are_skipped() -> None:
    assert events(b": keep-alive\n\n:\n\nid: 7\nretry: 3\nwhat\ndata: 1\n\n") == [(b"", b"1")]


def test_an_event_name_goes_with_its_data() -> None:
    assert events(b"event: error\ndata: 1\n\ndata: 2\n\n") == [(b"error", b"1"), (b"", b"2")]


def test_a_named_event_without_data_is_kept() -> None:
    """The standard drops it; but a bare `event: error` is an error."""
    assert events(b"event: error\n\n") == [(b"error", b"")]


def test_a_byte_order_mark_is_dropped_even_cut_up() -> None:
    for cut in range(4):
        whole = b"\xef\xbb\xbfdata: 1\n\n"
        assert events(whole[:cut], whole[cut:]) == [(b"", b"1")]


def test_what_only_looks_like_a_byte_order_mark_is_a_field() -> None:
    assert events(b"\xef\xbb", b"data: 1\n\ndata: 2\n\n") == [(b"", b"2")]


def test_the_end_of_the_stream_ends_an_event() -> None:
    assert events(b"data: [DONE]\n") == [(b"", b"[DONE]")]
    assert events(b"data: [DONE]") == [(b"", b"[DONE]")]


@pytest.mark.parametrize("read", [b"x" * 2**20, b"data: " + b"x" * 2**20 + b"\n"])
def test_what_has_no_end_is_refused_before_it_fills_the_memory(read: bytes) -> None:
    decoder = SseDecoder()
    fed = 0
    with pytest.raises(ValueError, match="more than 16 MiB"):  # noqa: PT012
        while fed < 40 * 2**20:
            decoder.feed(read)
            fed += len(read)
    assert fed < 17 * 2**20
    assert decoder.close() == []
