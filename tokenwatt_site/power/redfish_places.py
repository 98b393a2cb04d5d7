"""Where a chassis shows its power in a Redfish tree: the places differ by vendor and by age."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tokenwatt_site.documents import jsonfile
from tokenwatt_site.documents.spec import Scope
from tokenwatt_site.power.reading import checked
from tokenwatt_site.power.redfish_api import RedfishApi, Resource, link, members, objects
from tokenwatt_site.power.web import UnansweredError

MOST_MEMBERS = 64
_TOTAL = re.compile(r"(?:TotalPower|.*TotalHSC_Power.*)", re.IGNORECASE)
"""Names of sensors that hold a whole chassis; hot-swap controllers (HSC) stand at its DC entry."""
_WHOLE = frozenset({"Chassis", "Intake"})
"""Physical contexts of a PowerControl member that is the whole; others are parts of it."""
_OFF = frozenset({"Absent", "Disabled", "UnavailableOffline"})


@dataclass(frozen=True, slots=True)
class Place:
    """One place: what to ask, and the watts in the answers, which are added up."""

    words: str
    """For people, such as ``PowerControl``."""
    scope: Scope
    paths: tuple[str, ...]
    value: Callable[[Resource], Any]
    """The watts of one answer."""

    def watts(self, api: RedfishApi) -> float:
        """Return the power now.

        Raises:
            UnansweredError: an answer didn't come or holds no power: no part is left out of a sum.
        """
        parts = [_number(self.value(api.get(path))) for path in self.paths]
        total = sum(parts)
        code = checked(total, "power")
        if code is not None:
            raise UnansweredError(code, f"{total:g} W")
        return total


def places(api: RedfishApi, path: str, chassis: Resource) -> Iterator[Place]:
    """Yield the places of a chassis that hold a reading, the best first.

    A reading that is copied from a sensor is read from the sensor: copies are older.
    """
    for look in (_environment, _sensors, _controls, _supplies, _subsystem, _copy):
        try:
            found = look(api, path, chassis)
            if found is not None:
                found.watts(api)
                yield found
        except UnansweredError as error:
            if error.code in ("timeout", "unreachable", "unauthorized"):
                raise


def _environment(api: RedfishApi, path: str, chassis: Resource) -> Place | None:
    where = link(chassis, "EnvironmentMetrics")
    if where is None:
        return None
    power = api.get(where).get("PowerWatts")
    if not jsonfile.is_object(power):
        return None
    sensor = power.get("DataSourceUri")
    if not isinstance(sensor, str):
        return Place("EnvironmentMetrics", _scope(path, path), (where,), _excerpt)
    words = f"sensor {sensor.rpartition('/')[2]}"
    return Place(words, _scope(path, sensor), (sensor,), _reading)


def _copy(api: RedfishApi, path: str, chassis: Resource) -> Place | None:
    """EnvironmentMetrics whose sensor can't be read, where there is nothing else."""
    where = link(chassis, "EnvironmentMetrics")
    if where is None or not jsonfile.is_object(api.get(where).get("PowerWatts")):
        return None
    return Place("EnvironmentMetrics", _scope(path, path), (where,), _excerpt)


def _sensors(api: RedfishApi, path: str, chassis: Resource) -> Place | None:
    where = link(chassis, "Sensors")
    if where is None:
        return None
    listed = members(api.get(where), 10 * MOST_MEMBERS)
    named = [each for each in listed if _TOTAL.fullmatch(each.rpartition("/")[2])]
    if len(named) != 1:
        return None
    words = f"sensor {named[0].rpartition('/')[2]}"
    return Place(words, _scope(path, named[0]), (named[0],), _reading)


def _controls(api: RedfishApi, path: str, chassis: Resource) -> Place | None:
    where = link(chassis, "Power")
    if where is None:
        return None
    rows = objects(api.get(where), "PowerControl")
    whole = [i for i, row in enumerate(rows) if row.get("PhysicalContext") in _WHOLE]
    own = [i for i, row in enumerate(rows) if path in _related(row)]
    chosen = next((each for each in (whole, own) if len(each) == 1), list(range(len(rows))))
    if len(chosen) != 1:
        return None
    number = chosen[0]

    def value(resource: Resource) -> Any:
        return objects(resource, "PowerControl")[number].get("PowerConsumedWatts")

    return Place("PowerControl", _scope(path, path), (where,), value)


def _supplies(api: RedfishApi, path: str, chassis: Resource) -> Place | None:
    where = link(chassis, "Power")
    if where is None or not _working(objects(api.get(where), "PowerSupplies")):
        return None

    def value(resource: Resource) -> Any:
        rows = _working(objects(resource, "PowerSupplies"))
        return sum(_part(row.get("PowerInputWatts")) for row in rows)

    return Place("input of the power supplies", _scope(path, path), (where,), value)


def _subsystem(api: RedfishApi, path: str, chassis: Resource) -> Place | None:
    subsystem = link(chassis, "PowerSubsystem")
    listed = link(api.get(subsystem), "PowerSupplies") if subsystem else None
    if listed is None:
        return None
    metrics: list[str] = []
    for each in members(api.get(listed), MOST_MEMBERS):
        supply = api.get(each)
        if not _working([supply]):
            continue
        where = link(supply, "Metrics")
        if where is None:
            return None  # a sum without one supply is none
        metrics.append(where)
    if not metrics:
        return None
    said = [api.get(where) for where in metrics]
    for key, side in (("InputPowerWatts", "input"), ("OutputPowerWatts", "output")):
        parts = [each.get(key) for each in said]
        if all(jsonfile.is_object(part) for part in parts):
            scope: Scope = "node_dc" if side == "output" else _scope(path, path)
            return _of_supplies(f"{side} of the power supplies", scope, metrics, key, said)
    return None


def _of_supplies(
    words: str, scope: Scope, metrics: list[str], key: str, said: list[Resource]
) -> Place:
    sensors = [each[key].get("DataSourceUri") for each in said]
    if all(isinstance(sensor, str) for sensor in sensors):
        return Place(words, scope, tuple(sensors), _standby)
    return Place(words, scope, tuple(metrics), lambda resource: _part(resource[key].get("Reading")))


def _scope(path: str, place: str) -> Scope:
    """Return what a figure of a chassis includes.

    Redfish has the power that a chassis takes in at its mains. Behind hot-swap controllers it is
    DC, and what an NVIDIA baseboard (HGX) shows is the module with its GPUs, inside the server's.
    """
    if path.rpartition("/")[2].startswith("HGX"):
        return "module"
    return "node_dc" if "HSC" in place.rpartition("/")[2] else "node_ac"


def _related(row: Resource) -> set[Any]:
    return {item.get("@odata.id") for item in objects(row, "RelatedItem")}


def _working(rows: list[Resource]) -> list[Resource]:
    """Return the supplies that are there: an empty bay says nothing of power."""
    return [
        row
        for row in rows
        if not (jsonfile.is_object(row.get("Status")) and row["Status"].get("State") in _OFF)
    ]


def _excerpt(resource: Resource) -> Any:
    power = resource.get("PowerWatts")
    return power.get("Reading") if jsonfile.is_object(power) else None


def _reading(resource: Resource) -> Any:
    """Return a sensor's watts; a unit that isn't named is the watt of its kind."""
    unit = resource.get("ReadingUnits")
    if unit not in (None, "", "W") or resource.get("ReadingType", "Power") != "Power":
        return None
    return resource.get("Reading")


def _standby(resource: Resource) -> Any:
    """Return a supply's sensor: 0 is one that stands by."""
    return _part(_reading(resource))


def _part(value: Any) -> float:
    """Return one summand.

    Raises:
        UnansweredError: it is none; a sum without it would be too small.
    """
    return _number(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnansweredError("no_data", "no power there")
    code = checked(float(value), "energy")  # 0 is judged of the sum
    if code is not None:
        raise UnansweredError(code, f"{value} W")
    return float(value)
