"""Joining keeps what was measured, whatever the order and number of runs."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.demo_run import config, demo_document
from tokenwatt_site.documents import doors
from tokenwatt_site.documents.run import Run
from tokenwatt_site.method.join import Source, Wishes, join

_FIGURES = ("goodput_tok_s", "node_power_kw", "ttft_p99_ms", "tpot_p99_ms", "windows", "sweep")


@given(
    speeds=st.lists(st.floats(0.5, 2.0), min_size=1, max_size=4),
    place=st.integers(0, 3),
)
def test_no_figure_is_lost_or_swapped(speeds: list[float], place: int) -> None:
    sources = [
        Source(
            Run.model_validate(
                demo_document(configs=[config("candidate" if number else "baseline", speed=speed)])
            ),
            f"{number}.json",
            f"{number:064d}",
        )
        for number, speed in enumerate(speeds)
    ]
    given_order = [*sources[1:]]
    given_order.insert(place, sources[0])
    joined = join(given_order, Wishes())
    assert doors.dump(doors.parse_run(doors.dump(joined), "again")) == doors.dump(joined)
    for source, made in zip(sources, joined.configs, strict=True):
        was = source.run.configs[0]
        assert {key: getattr(made, key) for key in _FIGURES} == {
            key: getattr(was, key) for key in _FIGURES
        }
        assert made.source_sha256 == source.sha256
