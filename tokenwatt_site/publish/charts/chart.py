"""A chart as data: panels, series and marks in the units of the axes, and its table twin.

One `Chart` is drawn three times, for the page, as a file and for Explore, so that a title, an
axis, a tooltip and a cell can't disagree.
"""

import math
from dataclasses import dataclass
from typing import Literal

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Tick:
    """One tick; ``minor`` ones drop out on a narrow screen."""

    value: float
    text: str
    minor: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from ``lo`` to ``hi`` with its ticks.

    The page writes the title of an x axis only: that of the y axis is the figure's subtitle.
    """

    lo: float
    hi: float
    ticks: tuple[Tick, ...]
    title: str = ""
    log: bool = False

    def at(self, value: float) -> float:
        """Return where ``value`` lies: 0 at ``lo``, 1 at ``hi``, beyond it outside of them."""
        if self.log:
            low, high = math.log(self.lo), math.log(self.hi)
            return (math.log(max(value, 1e-12)) - low) / (high - low)
        return (value - self.lo) / (self.hi - self.lo)


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a series. ``hollow`` stands for outside the SLO, quick or simulated."""

    x: float
    y: float
    tip: str = ""
    hollow: bool = False
    marker: bool = True
    x_half: float | None = None
    y_half: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A line with markers. ``slot`` is its place in the order of colours, 0 is grey."""

    name: str
    slot: int
    points: tuple[Point, ...]
    line: bool = True
    thin: bool = False
    dashed: bool = False
    """Take the dash of the slot, for charts of several series."""
    small: bool = False
    """Small round markers; the last point keeps the marker of the slot."""
    label: bool = False
    """Name the series at the end of its line."""


@dataclass(frozen=True, slots=True)
class Band:
    """An area around a line: triples of x, low and high."""

    slot: int
    edges: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit, on the x or the y axis; what lies beyond it is tinted."""

    axis: Literal["x", "y"]
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Boundary:
    """The SLO boundary on the x axis, and between which rates it lies as far as is known."""

    x: float
    """The rate that held."""
    text: str
    between: tuple[float, float] | None = None
    estimate: float | None = None
    """Where it is thought to be."""


@dataclass(frozen=True, slots=True)
class Shade:
    """A stretch of the x axis that doesn't count."""

    start: float
    end: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A text beside a place of the plot; ``dx`` in px, ``dy`` in em."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    dx: float = 0
    dy: float = 0
    strong: bool = True
    far: bool = False
    """Drop out on a narrow screen."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot: axes and what is drawn between them."""

    title: str
    """What is plotted against what, for those who can't see it."""
    text: str
    """What the plot shows, in a sentence."""
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    bands: tuple[Band, ...] = ()
    limits: tuple[Limit, ...] = ()
    boundary: Boundary | None = None
    shades: tuple[Shade, ...] = ()
    notes: tuple[Note, ...] = ()
    size: Literal["", "sm", "lg"] = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table twin; numbers stand right."""

    name: str
    unit: str = ""
    text: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: what people read and the exact value for the CSV."""

    text: str
    exact: str


@dataclass(frozen=True, slots=True)
class Table:
    """The chart's numbers. The first column names the row."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure of a page."""

    id: str
    """Unique on its page: a slug, the name of its files."""
    title: str
    """The finding."""
    subtitle: str
    """Quantity, unit and scope."""
    panels: tuple[Panel, ...]
    table: Table
    mark: str = ""
    """Watermark: SIMULATED, DRAFT or empty."""
    tag: str = ""
    """Kind of the tag beside the title: simulated, quick, draft or empty."""
    key: tuple[tuple[str, int, bool], ...] = ()
    """Names, slots and hollowness of what the markers mean; empty where labels say it."""
    full: Table | None = None
    """The rows of the CSV where the table twin shows only some."""
    narrow_key: bool = False
    """Show the key only where the labels at the line ends have no room."""

    @property
    def several(self) -> bool:
        """Whether the key is of several series, which dashes tell apart too."""
        return len({slot for _, slot, _ in self.key}) > 1
