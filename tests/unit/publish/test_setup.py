"""What the run page's configuration says of the workload."""

from typing import Any

from tests.support.demo_run import demo_document
from tokenwatt_site.documents.run import Run
from tokenwatt_site.publish.views.headline import Source
from tokenwatt_site.publish.views.setup import setup_view


def asked(workload: dict[str, Any], config: dict[str, Any]) -> dict[str, str]:
    document = demo_document()
    document["workload"] = document["workload"] | workload
    document["configs"][0] |= config
    view = setup_view(Source.of(Run.model_validate(document)))
    return {row.name: str(row.value) for row in view.asked}


def test_a_document_without_them_has_no_rows_of_lengths() -> None:
    assert not {"Mean asked", "Longest", "Trace SHA-256", "Shared prompts"} & asked({}, {}).keys()


def test_what_was_drawn_stands_beside_what_was_asked() -> None:
    rows = asked(
        {
            "seed": 7,
            "nominal": {"input_tokens": 1693.53, "output_tokens": 423.4},
            "clamp": {"input_tokens": 8192, "output_tokens": 2048},
            "sha256": "ab" * 32,
        },
        {
            "realised": {
                "input_tokens": 1701.2, "output_tokens": 419.9, "n": 4512,
                "planned_cached_pct": 23.456,
            },
            "client": {"cached_pct": 22.1},
        },
    )  # fmt: skip
    assert rows["Mean asked"] == (
        "1,694 in, 423 out by the workload; 1,701 in, 420 out drawn, of 4,512 requests"
    )
    assert rows["Longest"] == "8,192 in, 2,048 out"
    assert rows["Trace SHA-256"] == "ab" * 32
    assert rows["Shared prompts"] == ("23.5 % of the prompt tokens by plan, 22.1 % cached at most")


def test_a_server_that_tells_nothing_of_its_cache_is_told_so() -> None:
    drawn = {"input_tokens": 9, "output_tokens": 9, "n": 9, "planned_cached_pct": 50}
    assert asked({}, {"realised": drawn})["Shared prompts"] == (
        "50.0 % of the prompt tokens by plan; the server doesn’t say what it cached"
    )
