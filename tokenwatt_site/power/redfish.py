"""A server's power by its management controller, over Redfish."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tokenwatt_site.documents.spec import Scope, SpecPower
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power.meter import Now, now
from tokenwatt_site.power.redfish_api import ROOT, RedfishApi, link, members
from tokenwatt_site.power.redfish_places import MOST_MEMBERS, Place, places
from tokenwatt_site.power.web import UnansweredError

_NOT_SHOWN = ("not_found", "forbidden", "bad_answer")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chassis that shows its power."""

    chassis: str
    """The last part of its path: what ``power.chassis`` names."""
    place: Place
    watts: float


class RedfishMeter:
    """One chassis, asked at the one place where it shows its power."""

    name = "redfish"
    gain_pct = None
    """No bound is published for what controllers show."""

    def __init__(
        self, api: RedfishApi, chosen: Candidate, scope: Scope | None, clock: Now = now
    ) -> None:
        self._api = api
        self._place = chosen.place
        self._clock = clock
        self.scope: Scope = scope or chosen.place.scope
        self.devices = (chosen.chassis,)
        self.source = f"Redfish, chassis {chosen.chassis}: {chosen.place.words}"

    def read(self) -> list[PowerSample]:
        """Return one sample, stamped at the middle of its call."""
        began_s = self._clock()
        watts, code = None, None
        try:
            watts = self._place.watts(self._api)
        except UnansweredError as error:
            code = error.code
        except (LookupError, TypeError, AttributeError):
            code = "bad_answer"
        t_s = (began_s + self._clock()) / 2
        return [PowerSample(t_s, self.devices[0], power_w=watts, error=code)]

    def close(self) -> None:
        """End the session and close the connection."""
        self._api.close()


def open_redfish(
    power: SpecPower, *, gpus: Sequence[int | str] | None, count: int, simulator_url: str | None
) -> RedfishMeter:
    """Open the power of one chassis.

    Raises:
        RefusedError: the controller can't be asked, shows no power, or that of several chassis.
        UsageError: no usable address, or a password variable that isn't set.
    """
    del gpus, count, simulator_url
    api = RedfishApi(power)
    try:
        return RedfishMeter(api, _chosen(api, power.chassis), power.scope)
    except UnansweredError as error:
        api.close()
        raise RefusedError(
            f"the Redfish service can't be asked ({error.code}: {error.words})", _hint(error, power)
        ) from None
    except BaseException:
        api.close()
        raise


def candidates(api: RedfishApi) -> Iterator[Candidate]:
    """Yield every chassis that shows its power, at the best of its places.

    Raises:
        UnansweredError: the service can't be asked.
    """
    listed = link(api.get(ROOT), "Chassis") or f"{ROOT}/Chassis"
    for path in members(api.get(listed), MOST_MEMBERS):
        try:
            found = _candidate(api, path)
        except UnansweredError as error:
            if error.code in _NOT_SHOWN:
                continue  # a member that vanished, is broken, or isn't this user's to see
            raise
        if found is not None:
            yield found


def _candidate(api: RedfishApi, path: str) -> Candidate | None:
    place = next(places(api, path, api.get(path)), None)
    if place is None:
        return None
    return Candidate(path.rpartition("/")[2], place, place.watts(api))


def _chosen(api: RedfishApi, asked: str | None) -> Candidate:
    """Return the chassis that a spec names, or the only one: the sum of several counts twice."""
    if asked is not None:
        try:
            named = _candidate(api, f"{ROOT}/Chassis/{asked}")
        except UnansweredError as error:
            if error.code not in _NOT_SHOWN:
                raise
            named = None
        if named is None:
            listed = _listed(list(candidates(api))) or "none"
            raise UsageError(f"power.chassis: {asked} shows no power", f"these do: {listed}")
        return named
    found = list(candidates(api))
    if not found:
        raise RefusedError(
            "the Redfish service shows no power of any chassis",
            "try ipmi; some controllers have it there",
        )
    if len(found) > 1:
        raise RefusedError(
            f"several chassis show their power: {_listed(found)}",
            "name the one that includes the others in power.chassis; they are never added up",
        )
    return found[0]


def _listed(found: Sequence[Candidate]) -> str:
    return ", ".join(
        f"{each.chassis} ({each.watts:,.0f} W, {each.place.scope}, {each.place.words})"
        for each in found
    )


def _hint(error: UnansweredError, power: SpecPower) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in error.words:
        return (
            "name a file with the controller's certificate in SSL_CERT_FILE, or set "
            "power.verify_tls: false, which the document says"
        )
    if error.code in ("unauthorized", "forbidden"):
        wanted = "power.username and power.password_env"
        return f"check {wanted}" if power.username else f"set {wanted}"
    return "check power.url; `curl` from this machine must reach it"
