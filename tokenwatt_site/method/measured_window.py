"""One measured window with everything that was observed in it."""

from dataclasses import dataclass

from tokenwatt_site.method.energy import EnergyWindow
from tokenwatt_site.method.meters import MeterFacts
from tokenwatt_site.method.server_metrics import ServerWindow
from tokenwatt_site.method.window import Window, WindowStats


@dataclass(frozen=True, slots=True)
class MeterWindow:
    """What one meter says of a window."""

    facts: MeterFacts
    energy: EnergyWindow


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """One window with everything that was observed in it."""

    window: Window
    stats: WindowStats
    meters: tuple[MeterWindow, ...]
    """The primary meter first; empty without a meter."""
    client: dict[str, float | None]
    """What the load generator says of itself, keys of documents.run.Client."""
    started: str
    valid: bool
    reasons: tuple[str, ...]
    inject: int = 0
    """Requests of the stationary start."""
    stationary: bool | None = None
    """Whether requests in flight showed no trend; None where the window was too short to tell."""
    server: ServerWindow | None = None
    """What the server says of itself."""
