"""The lines of ``events.jsonl`` that figures are computed from, and back.

``begin`` says what was asked and found before the first window, ``window`` which window was asked
for, ``played`` what the client knows of its load beside the requests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tokenwatt_site import __version__
from tokenwatt_site.documents import doors, jsonfile
from tokenwatt_site.documents.model_config import ModelConfig
from tokenwatt_site.documents.run import METHOD_VERSION, Hardware
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import DocumentError
from tokenwatt_site.method.account import Load
from tokenwatt_site.method.assemble import Resolved
from tokenwatt_site.method.meters import MeterFacts
from tokenwatt_site.method.probe import Cut, Probe
from tokenwatt_site.method.prose import Origin


@dataclass(frozen=True, slots=True)
class Begin:
    """What stood before the first window."""

    spec: Spec
    resolved: Resolved
    meters: tuple[MeterFacts, ...]
    server: dict[str, Any]
    """What decided the form of the requests."""
    tool: str
    method: str


def begin_row(
    spec: Spec, resolved: Resolved, meters: Sequence[MeterFacts], server: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the facts of ``begin``."""
    facts = asdict(resolved) | {"hardware": resolved.hardware.model_dump(mode="json")}
    return {
        "tool": __version__,
        "method": METHOD_VERSION,
        "resolved": facts,
        "meters": [meter.row() for meter in meters],
        "server": dict(server),
        "spec": doors.dump(spec),
    }


def begin_of(row: Mapping[str, Any]) -> Begin:
    """Return what a ``begin`` line says."""
    facts = row["resolved"]
    resolved = Resolved(
        hardware=Hardware.model_validate(facts["hardware"]),
        engine_version=facts["engine_version"],
        meter_source=facts["meter_source"],
        origin=Origin(**facts["origin"]),
        run_id=facts["run_id"],
        started=facts["started"],
        simulated=facts["simulated"],
        notes=tuple(facts["notes"]),
        model=_model_of(facts.get("model")),
    )
    meters = tuple(MeterFacts.of_row(each) for each in row["meters"])
    spec = doors.parse_spec(row["spec"])
    return Begin(spec, resolved, meters, row["server"], row["tool"], row["method"])


def _model_of(facts: Any) -> ModelConfig | None:
    """Return the model's config; evidence that was written before there was one has none."""
    if facts is None:
        return None
    config, quant, sha256 = facts["config"], facts["quant"], facts["sha256"]
    if not jsonfile.is_object(config) or not isinstance(sha256, str):
        raise DocumentError("events.jsonl: the model's config is none", "restore the evidence")
    return ModelConfig(config, quant if jsonfile.is_object(quant) else None, sha256)


def probe_row(probe: Probe) -> dict[str, Any]:
    """Return the facts of ``window``: the probe, what isn't asked for left out."""
    return {key: value for key, value in asdict(probe).items() if value is not None}


def probe_of(row: Mapping[str, Any]) -> Probe:
    """Return the probe of a ``window`` line."""
    facts: dict[str, Any] = {name: row[name] for name in Probe.__slots__ if name in row}
    if "cut" in row:
        facts["cut"] = Cut(**row["cut"])
    return Probe(**facts)


def idle_row(index: int, seconds: float) -> dict[str, Any]:
    """Return the facts of ``idle``: a stretch without load that the meters were read in."""
    return {"index": index, "seconds": seconds}


def load_row(index: int, load: Load) -> dict[str, Any]:
    """Return the facts of ``played``."""
    return {"index": index, **asdict(load)}


def load_of(row: Mapping[str, Any]) -> Load:
    """Return what a ``played`` line says."""
    return Load(**{name: row[name] for name in Load.__slots__})
