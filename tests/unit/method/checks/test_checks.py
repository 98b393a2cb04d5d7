"""Every rule fires on a document spoiled for it, alone, and none on the sound one."""

import json
import math
from typing import Any

import pytest

from tests.support.shared import ROOT, shared_path
from tests.support.sound_run import GONE, SOUND, run_of, spoiled
from tokenwatt_site.documents import doors
from tokenwatt_site.documents.hardware import Hardware, known_hardware
from tokenwatt_site.method.checks import RULES, Checked, checks

TODAY = "2026-11-30"
FACTS: Hardware = known_hardware(ROOT / "content" / "hardware")["NVIDIA H200"]
SEED = "h200x4-deepseek-v4.1-flash-fp8-vllm"
# put together here, so that no file of the project holds such a string
ROOT_PATH, HOME, USERS = "/ro" + "ot/bench", "/ho" + "me/ada/x", "/Us" + "ers/ada/x"
KEY, TOKEN = "sk" + "-abcdefghij0123456789", "hf" + "_abcdefghij0123456789"
BEARER = "Authorization: " + "Bearer abcdef0123456789abcdef"


def check(document: dict[str, Any], hardware: Hardware | None = FACTS) -> Checked:
    return checks(run_of(document), document, hardware, TODAY)


def fired(document: dict[str, Any], hardware: Hardware | None = FACTS) -> list[tuple[str, str]]:
    return [(f.code, f.pointer) for f in check(document, hardware).findings]


def test_a_sound_document_has_no_finding_and_every_check_applies_but_mbus() -> None:
    found = check(SOUND)
    assert found.findings == ()
    assert [code for code, _ in found.not_applicable] == ["MBU_IMPOSSIBLE", "MBU_HIGH"]


def test_the_published_seed_has_exactly_the_expected_findings() -> None:
    expected = json.loads(shared_path("seed/findings.json").read_text(encoding="utf-8"))
    run, raw = doors.load_run(shared_path(f"seed/{SEED}.json"))
    found = checks(run, json.loads(raw), FACTS, TODAY).findings
    keys = ("severity", "code", "pointer")
    assert [{key: getattr(f, key) for key in keys} for f in found] == expected


WINDOW, CONFIG = SOUND["configs"][0]["windows"][0], SOUND["configs"][0]
CANDIDATE = CONFIG | {"key": "candidate"}
EXPLAINED = SOUND["missing"] | {"/configs/1/mbu_pct": SOUND["missing"]["/configs/0/mbu_pct"]}
UNMETERED = {
    "configs__0__energy": GONE, "configs__0__node_power_kw": None, "power__kind": "none",
    "power__sampling_hz": None,
    "missing": SOUND["missing"]
    | {"/configs/0/node_power_kw": {"code": "NO_METER", "text": "no meter"}},
}  # fmt: skip

WITHOUT_RATE = ("goodput_tok_s", "ttft_p99_ms", "tpot_p99_ms")
NO_RATE = {
    "runs": 0, "configs__0__repeats": 0, "configs__0__slo_pass_count": 0,
    "verdict__word": "no_rate", "summary": ".", "configs__0__windows": [],
    "configs__0__rate_rps": GONE, "configs__0__counts": GONE,
    **{f"configs__0__{key}": None for key in WITHOUT_RATE},
    "missing": UNMETERED["missing"]
    | {f"/configs/0/{key}": {"code": "NO_RATE", "text": "none"} for key in WITHOUT_RATE},
}  # fmt: skip

FIRES: list[tuple[str, dict[str, Any], str]] = [
    ("PRIVATE_PATH", {"spec__model__config": f"{ROOT_PATH}/config.json"}, "/spec/model/config"),
    ("PRIVATE_PATH", {"reproduce": f"cd {HOME} && run"}, "/reproduce"),
    ("PRIVATE_PATH", {"not_covered__0": f"see {USERS}"}, "/not_covered/0"),
    ("PRIVATE_PATH", {"hardware__host": "C:\\bench"}, "/hardware/host"),
    ("PRIVATE_PATH", {"reproduce": ROOT_PATH + "x" * 90}, "/reproduce"),
    (
        "PRIVATE_ADDRESS",
        {"spec__engine__endpoint": "http://10.0.3.4:8000/v1"},
        "/spec/engine/endpoint",
    ),
    ("PRIVATE_ADDRESS", {"hardware__host": "172.31.255.1"}, "/hardware/host"),
    ("PRIVATE_ADDRESS", {"hardware__host": "at 192.168.1.20."}, "/hardware/host"),
    ("PRIVATE_ADDRESS", {"hardware__host": "gpu-7.local"}, "/hardware/host"),
    (
        "PRIVATE_ADDRESS",
        {"spec__power__1__url": "https://bmc.rack.internal/redfish"},
        "/spec/power/1/url",
    ),
    ("SECRET", {"reproduce": f"API_KEY={KEY} run"}, "/reproduce"),
    ("SECRET", {"not_covered__0": TOKEN}, "/not_covered/0"),
    ("SECRET", {"software__kernels": BEARER}, "/software/kernels"),
    (
        "SECRET",
        {"spec__engine__endpoint": "https://ada:pw@host.example/v1"},
        "/spec/engine/endpoint",
    ),
    ("EMAIL", {"not_covered__0": "ask ada.l@mail.example.org about it"}, "/not_covered/0"),
    ("EMAIL", {"summary": SOUND["summary"] + " mailto:ada@example.org"}, "/summary"),
    ("QUICK_PUBLISHED", {"quick": True}, "/status"),
    ("QUICK_PUBLISHED", {"not_covered__0": "QUICK mode only"}, "/status"),
    ("QUICK_PUBLISHED", {"summary": SOUND["summary"] + " Not for publishing."}, "/status"),
    (
        "THROTTLING_UNDISCLOSED",
        {"configs__0__throttle_counts": {"sw_power_cap": 1000}},
        "/configs/0/throttle_counts",
    ),
    (
        "THROTTLING_UNDISCLOSED",
        {"configs__0__throttle_counts": {"sw_power_cap": 9}, "configs__0__throttle_share_pct": 1.2},
        "/configs/0/throttle_counts",
    ),
    (
        "THROTTLING_UNDISCLOSED",
        {"configs__0__throttle_counts": {"hw_thermal_slowdown": 1}},
        "/configs/0/throttle_counts",
    ),
    (
        "THROTTLING_UNDISCLOSED",
        {"configs__0__throttle_counts": {"power_brake": 1, "sw_power_cap": 1}},
        "/configs/0/throttle_counts",
    ),
    (
        "POWER_OVER_LIMIT",
        {"configs__0__node_power_kw": 2.95, "configs__0__energy__j_per_output_token": 1.475},
        "/configs/0/node_power_kw",
    ),
    (
        "NODE_BELOW_BOARDS",
        {"configs__0__energy__node_minus_boards_w": -40.0},
        "/configs/0/energy/node_minus_boards_w",
    ),
    ("MBU_IMPOSSIBLE", {"configs__0__mbu_pct": 122.0}, "/configs/0/mbu_pct"),
    ("SLO_CLAIM", {"configs__0__tpot_p99_ms": 50.1}, "/configs/0/tpot_p99_ms"),
    (
        "SLO_CLAIM",
        {"configs__0__windows__1__ttft_p99_ms": 2001.0},
        "/configs/0/windows/1/ttft_p99_ms",
    ),
    ("SLO_CLAIM", {"configs__0__sweep__0__passed": True}, "/configs/0/sweep/0/tpot_p99_ms"),
    ("COUNTS", {"configs__0__counts__sent": 4501}, "/configs/0/counts"),
    ("COUNTS", {"configs__0__windows__0__counts__ok": 1490}, "/configs/0/windows/0/counts"),
    ("COUNTS", {"configs__0__sweep__0__counts__ok": 1490}, "/configs/0/sweep/0/counts"),
    ("COUNTS", {"configs__0__repeats": 4}, "/configs/0/repeats"),
    (
        "COUNTS",
        {"spec__measurement__repeats": 5, "spec__sweep": {"rates": [5]}},
        "/configs/0/repeats",
    ),
    ("COUNTS", {"configs__0__slo_pass_count": 4}, "/configs/0/slo_pass_count"),
    (
        "COUNTS",
        {"configs__0__throttle_counts": {"idle": 36_013}},
        "/configs/0/throttle_counts/idle",
    ),
    (
        "COUNTS",
        {"configs__0__windows__0__window_s": 600, "configs__0__throttle_counts": {"idle": 48_013}},
        "/configs/0/throttle_counts/idle",
    ),
    (
        "IDENTITY",
        {"configs__0__energy__j_per_output_token": 1.21},
        "/configs/0/energy/j_per_output_token",
    ),
    ("IDENTITY", {"spec__model__tensor_parallel": 8}, "/hardware/count"),
    (
        "IDENTITY",
        {"configs__0__hardware": SOUND["hardware"] | {"count": 5}},
        "/configs/0/hardware/count",
    ),
    (
        "METERS_DISAGREE",
        {"configs__0__energy__check__verdict": "disagree"},
        "/configs/0/energy/check",
    ),
    (
        "METERS_DISAGREE",
        {"configs__0__energy__check__difference_pct": -5.1},
        "/configs/0/energy/check",
    ),
    ("BIG_INTEGER", {"configs__0__energy__samples": 2**53 + 1}, "/configs/0/energy/samples"),
    (
        "SUMMARY_NUMBER",
        {"configs__0__rate_rps": 5.06, "configs__0__tokens__output": 396.0},
        "/summary",
    ),
    ("SUMMARY_NUMBER", {"configs__0__goodput_tok_s": 1995.6}, "/summary"),
    ("SUMMARY_NUMBER", {"configs__0__input_tok_s": 8600.0}, "/summary"),
    ("SUMMARY_NUMBER", {"configs__0__accuracy__score": 90.6}, "/summary"),
    ("SUMMARY_NUMBER", {"summary": "4 repeats on 2026-11-20"}, "/summary"),
    ("SUMMARY_NUMBER", {"summary": "2-minute windows"}, "/summary"),
    ("SUMMARY_NUMBER", {"summary": "299-second windows"}, "/summary"),
    ("SUMMARY_NUMBER", {"summary": "p99 TTFT < 2,001 ms"}, "/summary"),
    ("SUMMARY_NUMBER", {"summary": "p99 TPOT <= 0.06 s"}, "/summary"),
    ("DATES", {"started": "2026-11-20T11:00:00Z"}, "/started"),
    ("DATES", {"published": "2026-11-19", "summary": "."}, "/finished"),
    ("DATES", {"published": "2026-12-01"}, "/published"),
    ("DATES", {"title": "Measured 2026-11-18"}, "/title"),
    ("DATES", {"summary": "Measured 19 November 2026"}, "/summary"),
    ("DATES", {"summary": "Measured October 20, 2026"}, "/summary"),
    ("SCOPE_NAME", {"configs__0__energy": GONE}, "/configs/0/node_power_kw"),
    ("DANGLING_TEXT", {"hardware__host": "pod, "}, "/hardware/host"),
    ("DANGLING_TEXT", {"not_covered__0": "and also:"}, "/not_covered/0"),
    ("DANGLING_TEXT", {"title": "Model –"}, "/title"),
    ("EMPTY_TEXT", {"hardware__driver": ""}, "/hardware/driver"),
    ("EMPTY_TEXT", {"configs__0__engine": ""}, "/configs/0/engine"),
    ("EMPTY_TEXT", {"title": ""}, "/title"),
    ("ACCURACY_UNDERPOWERED", {"spec__accuracy__limit": 50}, "/configs/0/accuracy"),
    (
        "FEW_REPEATS",
        {
            "runs": 1,
            "configs__0__repeats": 1,
            "configs__0__slo_pass_count": 1,
            "spec__measurement__repeats": 1,
            "summary": ".",
        },
        "/runs",
    ),
    (
        "FEW_REPEATS",
        {
            "runs": 2,
            "configs__0__repeats": 2,
            "configs__0__slo_pass_count": 2,
            "spec__measurement__repeats": 2,
            "summary": ".",
        },
        "/runs",
    ),
    (
        "SAMPLING_SLOW",
        {"power__sampling_hz": 1.9, "configs__0__energy__method": "sampled"},
        "/power/sampling_hz",
    ),
    (
        "SAMPLING_SLOW",
        {
            "configs__0__power": SOUND["power"] | {"sampling_hz": 1},
            "configs__0__energy__method": "sampled",
        },
        "/configs/0/power/sampling_hz",
    ),
    ("WINDOW_SHORT", {"configs__0__windows__2__window_s": 120}, "/power/window"),
    (
        "WINDOW_SHORT",
        {"configs__0__windows__2__counts": {"sent": 299, "ok": 299, "failed": 0, "unfinished": 0}},
        "/power/window",
    ),
    (
        "ONE_METER",
        {"configs__0__energy__node_minus_boards_w": None, "spec__power": {"source": "board"}},
        "/power",
    ),
    (
        "ONE_METER",
        {
            "configs__0__energy__node_minus_boards_w": None,
            "spec__power": None,
            "configs__0__power": SOUND["power"],
        },
        "/configs/0/power",
    ),
    (
        "ONE_METER",
        {
            "configs__0__energy__node_minus_boards_w": None,
            "spec__power": [{"source": "board"}, {"source": "none"}],
        },
        "/power",
    ),
    ("PROVIDER_MISMATCH", {"spec__name": "lambda-model"}, "/spec/name"),
    ("PROVIDER_MISMATCH", {"hardware__host": "a pod at Vast.ai"}, "/spec/name"),
    ("LADDER_POLICY", {"spec__sweep": {}}, "/spec/sweep"),
    ("LADDER_POLICY", {"spec__sweep__strategy": "ladder"}, "/spec/sweep"),
    ("NULL_UNEXPLAINED", {"missing": {}}, "/configs/0/mbu_pct"),
    ("NULL_UNEXPLAINED", {"variance_band_pct": None}, "/variance_band_pct"),
    ("NOT_RECOMPUTABLE", {"evidence": GONE}, "/configs/0"),
    ("NOT_RECOMPUTABLE", {"configs__0__energy__samples": None}, "/configs/0"),
    ("NOT_RECOMPUTABLE", {"configs__0__mbu_pct": 60.0}, "/configs/0"),
    ("GOODPUT_VS_RATE", {"configs__0__tokens__output": 420.0}, "/configs/0/goodput_tok_s"),
    ("MBU_HIGH", {"configs__0__mbu_pct": 85.1}, "/configs/0/mbu_pct"),
    ("TLS_UNVERIFIED", {"spec__power__1__verify_tls": False}, "/spec/power/1/verify_tls"),
    (
        "TLS_UNVERIFIED",
        {"spec__power": {"source": "redfish", "url": "https://bmc.example", "verify_tls": False}},
        "/spec/power/verify_tls",
    ),
    (
        "UNTRUSTED_CLOCK",
        {"configs__0__client__clock_drift_pct": -0.2},
        "/configs/0/client/clock_drift_pct",
    ),
    ("CLIENT_LAG", {"configs__0__client__lag_p99_ms": 10.1}, "/configs/0/client/lag_p99_ms"),
    ("BUFFERED", {"configs__0__itl_ms__p50": 0}, "/configs/0/itl_ms/p50"),
]
BESIDE = {code: {"NOT_RECOMPUTABLE"} for code in ("MBU_IMPOSSIBLE", "MBU_HIGH", "SCOPE_NAME")}
"""What fires on the same document by nature: what is missing can't be recomputed either."""


@pytest.mark.parametrize("code, changes, pointer", FIRES)
def test_a_rule_fires_at_its_place_and_alone(
    code: str, changes: dict[str, Any], pointer: str
) -> None:
    found = fired(spoiled(**changes))
    assert (code, pointer) in found
    assert {other for other, _ in found} - BESIDE.get(code, set()) == {code}
    assert [other for other, _ in found].count(code) == 1


def test_every_rule_is_seen_to_fire() -> None:
    """NON_FINITE is left to a test of its own: no document that is read can hold such a number."""
    assert {code for code, _, _ in FIRES} | {"NON_FINITE"} == {rule.code for rule in RULES}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_found_in_what_was_never_read(value: float) -> None:
    data = spoiled(configs__0__tpot_p99_ms=value)
    found = checks(run_of(SOUND), data, FACTS, TODAY).findings
    assert [(f.code, f.pointer) for f in found] == [("NON_FINITE", "/configs/0/tpot_p99_ms")]


SILENT: list[dict[str, Any]] = [
    {"spec__engine__endpoint": "https://example.com/home/x/v1"},
    {"hardware__host": "127.0.0.1"},
    {"hardware__driver": "110.0.3.4"},
    {"hardware__driver": "10.0.3.4.5"},
    {"hardware__driver": "192.168.1"},
    {"hardware__host": "the local.example of internal tokens"},
    {"software__kernels": "image@sha256:0123"},
    {"not_covered__0": "bearer authentication of engines"},
    {"not_covered__0": "task-abcdefghij0123456789"},
    {"status": "draft", "quick": True},
    {"configs__0__throttle_counts": {"sw_power_cap": 360}},
    {"configs__0__windows__0__window_s": 600, "configs__0__throttle_counts": {"idle": 48_012}},
    {"configs__0__throttle_counts": {"sw_thermal_slowdown": 0}},
    {"configs__0__throttle_counts": {"sw_power_cap": 9000}, "not_covered__0": "Throttled 25 %"},
    {"configs__0__throttle_counts": {"sw_power_cap": 9000}, "not_covered__0": "at the power limit"},
    {"configs__0__slo_pass_count": 2, "configs__0__tpot_p99_ms": 51.0},
    {"spec__measurement__repeats": 5},
    {"verdict": GONE, "spec__measurement__repeats": 5},
    {"hardware__count": 0},
    {"configs__0__energy__check": None},
    {"summary": "About 2,000 output tokens per second, and 12 cores, 30 % of the time."},
    {"summary": "Nothing to compare."},
    {"published": None, "summary": "Measured November 20, 2026"},
    {"published": None, "started": None, "finished": None, "summary": "Measured May 2, 2020"},
    {"spec__accuracy__stop": ["\n\nQuestion:"], "software__kernels": "run --flag "},
    {"spec__accuracy__limit": None},
    {"accuracy": None},
    {"configs": [CONFIG, CANDIDATE], "missing": EXPLAINED, "spec__accuracy__limit": 8000},
    {"runs": 0, "configs__0__repeats": 0, "configs__0__slo_pass_count": 0,
     "verdict__word": "no_rate", "summary": "."},
    {"power__sampling_hz": 1},
    {"spec__name": "model", "hardware__host": "Lambda"},
    {"configs__0__client": GONE},
    {"configs__0__tokens": GONE},
    {"configs__0__goodput_tok_s": 2050.0, "summary": "."},
    UNMETERED | NO_RATE,
    UNMETERED,
    {"configs__0__itl_ms__p50": 4.1},
]  # fmt: skip


@pytest.mark.parametrize("changes", SILENT)
def test_what_is_in_order_is_no_finding(changes: dict[str, Any]) -> None:
    assert fired(spoiled(**changes)) == []


@pytest.mark.parametrize(
    "code, changes",
    [
        ("IDENTITY", UNMETERED),
        ("NODE_BELOW_BOARDS", UNMETERED),
        ("METERS_DISAGREE", UNMETERED),
        ("POWER_OVER_LIMIT", UNMETERED),
        ("UNTRUSTED_CLOCK", {"configs__0__client": GONE}),
        ("CLIENT_LAG", {"configs__0__client": GONE}),
        ("BUFFERED", {"configs__0__itl_ms": GONE}),
        ("BUFFERED", {"configs__0__tpot_ms__p50": None}),
        ("GOODPUT_VS_RATE", {"configs__0__tokens": GONE}),
        ("ACCURACY_UNDERPOWERED", {"accuracy": None}),
        ("FEW_REPEATS", {"runs": 0}),
        ("WINDOW_SHORT", {"runs": 0}),
        (
            "SUMMARY_NUMBER",
            {"summary": "5 requests/s", "configs__0__rate_rps": None},
        ),
        (
            "THROTTLING_UNDISCLOSED",
            {"configs__0__throttle_counts": {"sw_power_cap": 9, "gpu_idle": 9}},
        ),
    ],
)
def test_a_check_that_lacks_its_figures_says_so(code: str, changes: dict[str, Any]) -> None:
    assert code in dict(check(spoiled(**changes)).not_applicable)


def test_the_limit_may_come_from_the_rated_figures() -> None:
    changes = {
        "hardware__power_limit_w": None,
        "configs__0__node_power_kw": 2.95,
        "configs__0__energy__j_per_output_token": 1.475,
    }
    assert fired(spoiled(**changes)) == [("POWER_OVER_LIMIT", "/configs/0/node_power_kw")]
    assert fired(spoiled(**changes), hardware=None) == []


def test_a_secret_is_not_repeated() -> None:
    finding = check(spoiled(reproduce=f"API_KEY={KEY} run")).findings[0]
    assert KEY[3:] not in finding.text


def test_a_pointer_is_escaped() -> None:
    document = spoiled(labels={"a/b~c": f"{ROOT_PATH}/x"})
    assert fired(document) == [("PRIVATE_PATH", "/labels/a~1b~0c")]


def test_findings_read_as_sentences_with_a_next_step() -> None:
    for _, changes, _ in FIRES:
        for finding in check(spoiled(**changes)).findings:
            assert finding.text[0] == finding.text[0].upper()
            assert finding.text.endswith(".")
            assert finding.mend
            assert not finding.mend.endswith(".")


def test_codes_are_unique_and_errors_come_first() -> None:
    codes = [rule.code for rule in RULES]
    assert len(set(codes)) == len(codes)
    severities = [rule.severity for rule in RULES]
    assert severities == sorted(severities)
