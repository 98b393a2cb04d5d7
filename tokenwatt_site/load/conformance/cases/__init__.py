"""All cases, by what they are about."""

from tokenwatt_site.load.conformance.case import Case
from tokenwatt_site.load.conformance.cases.counting import COUNTING
from tokenwatt_site.load.conformance.cases.endings import ENDINGS
from tokenwatt_site.load.conformance.cases.exchanges import EXCHANGES
from tokenwatt_site.load.conformance.cases.framing import FRAMING
from tokenwatt_site.load.conformance.cases.token_events import TOKEN_EVENTS

CASES: tuple[Case, ...] = (*FRAMING, *TOKEN_EVENTS, *COUNTING, *ENDINGS, *EXCHANGES)


def rows() -> list[tuple[Case, str]]:
    """Return each case with each dialect that it is told in."""
    return [(case, api) for case in CASES for api in case.apis]
