"""``tokenwatt-site mbu``: the computation told, as text and as JSON, and what it refuses."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.configs import TINY, config_path
from tokenwatt_site.cli.mbu import mbu
from tokenwatt_site.errors import UsageError

V3 = "deepseek-ai--DeepSeek-V3"
ASKED = ("--batch", "32", "--ctx", "4000", "--tpot-ms", "40")


def called(*arguments: str | Path) -> Result:
    return CliRunner().invoke(mbu, [str(each) for each in arguments], catch_exceptions=False)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TINY), encoding="utf-8")
    return path


def test_every_term_is_told() -> None:
    text = called(config_path(V3), *ASKED, "--tp", "8", "--accelerator", "h200").output
    assert "deepseek_v3, 671.0 B parameters, 61 layers, 256 experts, 8 a token" in text
    assert "163.3 of 256 experts × 653,908,770,816 × 1.00024 B; quantization_config" in text
    assert "32 sequences × 61 layers × ctx × 576 × 2 B × 8 copies" in text
    assert "434.49 GB of weights + 71.96 GB of caches" in text
    assert "MBU = 506.447 GB ÷ 40 ms ÷ (4.8 TB/s × 8) = 33.0 %" in text
    assert "bandwidth: NVIDIA H200, " in text
    assert "keys that change nothing here: architectures" in text


def test_the_terms_add_up(config: Path) -> None:
    found = json.loads(called(config, *ASKED, "--bandwidth-tbs", "1", "--json").output)
    assert sum(term["bytes"] for term in found["terms"]) == pytest.approx(
        found["weight_bytes"] + found["kv_bytes"]
    )
    share = 100 * (found["weight_bytes"] + found["kv_bytes"]) / 0.04 / 1e12
    assert found["mbu_pct"] == pytest.approx(share)
    assert found["batch"] == 32


def test_a_draft_and_replicas_are_told(config: Path) -> None:
    more = ("--tokens-verified", "3", "--tokens-accepted", "2.5", "--replicas", "2")
    text = called(config.parent, *ASKED, *more, "--bandwidth-tbs", "2").output
    assert "÷ (40 ms × 2.5 accepted) ÷ (2 TB/s × 2)" in text
    assert "^96)" in text


def test_a_draft_may_be_told_as_a_spec_tells_it(config: Path) -> None:
    told = ("--geometry", "tokens_verified=3", "--geometry", "tokens_accepted=2.5")
    more = ("--tokens-verified", "3", "--tokens-accepted", "2.5")
    outputs = [
        called(config, *ASKED, *each, "--bandwidth-tbs", "2").output for each in (told, more)
    ]
    assert outputs[0] == outputs[1]


def test_without_a_bandwidth_no_share(config: Path) -> None:
    text = called(config, *ASKED).output
    assert "no share: give --accelerator or --bandwidth-tbs" in text
    assert "MBU =" not in text
    assert json.loads(called(config, *ASKED, "--json").output)["mbu_pct"] is None


def test_more_than_can_be_read_is_refused() -> None:
    asked = ("--batch", "32", "--ctx", "4000", "--tpot-ms", "8", "--bandwidth-tbs", "4.8")
    with pytest.raises(UsageError, match="MBU_IMPOSSIBLE: 122 %"):
        called(config_path("openai--gpt-oss-120b"), *asked)


def test_keys_can_be_replaced(config: Path) -> None:
    config.write_text(json.dumps(TINY | {"odd": 3}), encoding="utf-8")
    with pytest.raises(UsageError, match="odd"):
        called(config, *ASKED)
    replaced = ("--geometry", "odd=null", "--geometry", "dtype=float32")
    assert "fp32" in called(config, *ASKED, *replaced).output
    with pytest.raises(UsageError, match="KEY=VALUE"):
        called(config, *ASKED, "--geometry", "odd")


@pytest.mark.parametrize("wrong", ["nan", "inf", "-1", "0", "1e300", "x"])
def test_what_is_no_amount_is_refused(config: Path, wrong: str) -> None:
    assert called(config, "--batch", wrong, "--ctx", "1", "--tpot-ms", "1").exit_code == 2


@pytest.mark.parametrize(
    "more, words",
    [
        (("--accelerator", "H2000"), "NVIDIA H200"),
        (("--accelerator", "abacus"), "give --bandwidth-tbs"),
        (("--accelerator", "H200", "--bandwidth-tbs", "1"), "give one of them"),
        (("--tokens-accepted", "2"), "--tokens-verified"),
    ],
)
def test_what_contradicts_itself_is_refused_with_the_next_step(
    config: Path, more: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        called(config, *ASKED, *more)
    assert words in str(caught.value)
