"""What a run document is checked for, beyond its schema: a closed list of rules, in order."""

from dataclasses import dataclass
from typing import Any

from tokenwatt_site.documents.hardware import Hardware
from tokenwatt_site.documents.run import Run
from tokenwatt_site.method.checks import coverage, figures, power, prose, strings
from tokenwatt_site.method.checks.rule import NotApplicable, Rule, Severity, Subject

RULES: tuple[Rule, ...] = (
    Rule(
        "PRIVATE_PATH", "error", strings.private_path,
        "A path such as /root/… or C:\\… names a machine that no reader has, and maybe its user.",
        "write the path relative to the spec, or only the file's name",
    ),
    Rule(
        "PRIVATE_ADDRESS", "error", strings.private_address,
        "An address of a private network (10.…, 172.16.…, 192.168.…, .local, .internal) means"
        " nothing outside it and tells how it is built. Loopback is fine.",
        "describe the machine instead of its address",
    ),
    Rule(
        "SECRET", "error", strings.secret,
        "Something looks like an API key, a bearer token or a user in a URL.",
        "remove it, and revoke it: what has been in a file is known",
    ),
    Rule(
        "EMAIL", "error", strings.email,
        "An e-mail address in a published document collects mail and can't be taken back.",
        "remove it, or name a page instead",
    ),
    Rule(
        "QUICK_PUBLISHED", "error", prose.quick_published,
        "A quick measurement has short windows and few repeats: good for trying a set-up, too"
        " little for a published figure.",
        "measure with full windows, or set status to draft",
    ),
    Rule(
        "THROTTLING_UNDISCLOSED", "error", power.throttling_undisclosed,
        "Throttled accelerators show what their power limit or cooling allows, not the engine. More"
        " than 1 % of the time under a power cap, or any thermal, brake or hardware slowdown, has"
        " to be said in the summary or in not_covered.",
        "say in the summary or in not_covered how much was throttled and why",
    ),
    Rule(
        "POWER_OVER_LIMIT", "error", power.power_over_limit,
        "Boards can't draw more than 1.05 times their limit on average: scope, unit or number of"
        " accelerators is wrong.",
        "check the meter's scope and unit, and hardware.count",
    ),
    Rule(
        "NODE_BELOW_BOARDS", "error", power.node_below_boards,
        "A node contains its accelerators and can't draw less than they do.",
        "check both meters' units and the hosts they belong to",
    ),
    Rule(
        "MBU_IMPOSSIBLE", "error", figures.mbu_impossible,
        "No memory delivers more than it is rated at: bytes a step, batch or bandwidth are wrong.",
        "check the model's geometry and data types, and the rated bandwidth",
    ),
    Rule(
        "SLO_CLAIM", "error", figures.slo_claim,
        "Where every window kept a limit, the 99th percentile is within it.",
        "correct the percentile, the limit or the number of windows that passed",
    ),
    Rule(
        "COUNTS", "error", figures.counts,
        "Sent = ok + failed + unfinished; all configurations have the windows that the document and"
        " the spec name; no more windows pass, and no more samples are throttled, than there are.",
        "correct the counts, or measure again",
    ),
    Rule(
        "IDENTITY", "error", figures.identity,
        "Energy a token times tokens a second is power (within 0.5 %), and replicas × TP × PP is"
        " the number of accelerators.",
        "correct the figure that is wrong, or the model's parallelism in the spec",
    ),
    Rule(
        "METERS_DISAGREE", "error", power.meters_disagree,
        "Two readings of the same energy differ by more than 5 %, so neither can be trusted.",
        "find the meter that is wrong: unit, scope, sampling, clock",
    ),
    Rule(
        "NON_FINITE", "error", figures.non_finite,
        "NaN and infinity are no JSON and no figures.",
        "write null, and the reason into `missing`",
    ),
    Rule(
        "BIG_INTEGER", "error", figures.big_integer,
        "Browsers hold whole numbers up to 2⁵³ exactly; a larger one shows another value.",
        "write it as text, or as a number with an exponent",
    ),
    Rule(
        "SUMMARY_NUMBER", "error", prose.summary_number,
        "The summary's rates, tokens per second, accuracy, repeats, windows and limits are those of"
        " the fields, at the digits written. Other numbers aren't looked at.",
        "correct the summary",
    ),
    Rule(
        "DATES", "error", prose.dates,
        "Started, finished, published and today are in this order; a date in title or summary is"
        " that of the measurement or of publication.",
        "correct the date",
    ),
    Rule(
        "SCOPE_NAME", "warning", power.scope_name,
        "node_power_kw holds the primary meter's power, whatever it includes; without energy.scope"
        " a sum of boards reads as the power of a node.",
        "measure again with this version, which writes energy.scope",
    ),
    Rule(
        "DANGLING_TEXT", "warning", strings.dangling_text,
        "A text that ends with a comma, a dash or a space was cut off or put together badly.",
        "finish the text",
    ),
    Rule(
        "EMPTY_TEXT", "warning", strings.empty_text,
        "A page has a place for this text and shows nothing there.",
        "fill it in the spec, or leave the key out",
    ),
    Rule(
        "ACCURACY_UNDERPOWERED", "warning", coverage.accuracy_underpowered,
        "The 95 % interval of the score is wider than twice the drop that the check is to find.",
        "ask more questions: four times as many halve the interval",
    ),
    Rule(
        "FEW_REPEATS", "warning", coverage.few_repeats,
        "Under three windows there is no interval to publish.",
        "set measurement.repeats to 3 or more",
    ),
    Rule(
        "SAMPLING_SLOW", "warning", power.sampling_slow,
        "Samples under 2 Hz miss what happens between them: a 1 Hz reader of a 1 Hz square wave is"
        " off by a third.",
        "set power.sampling_hz to 10, or read an energy counter",
    ),
    Rule(
        "WINDOW_SHORT", "warning", coverage.window_short,
        "Under 180 s or 300 requests a window shows its load's luck more than the server.",
        "set measurement.window_s to 300",
    ),
    Rule(
        "ONE_METER", "warning", power.one_meter,
        "A meter that is wrong by 10 % looks as good as one that is right. A device's counter and"
        " its samples are one meter.",
        "add a second meter to the spec's power, such as the node's",
    ),
    Rule(
        "PROVIDER_MISMATCH", "warning", prose.provider_mismatch,
        "The spec's name and the host name different known providers.",
        "rename the spec, or correct hardware.host",
    ),
    Rule(
        "LADDER_POLICY", "warning", coverage.ladder_policy,
        "A ladder accepts a rate when its windows pass. Windows differ by the load that chance"
        " sends, so that some rates pass that would not hold.",
        "read the rate as met in these windows; more and longer windows make luck rarer",
    ),
    Rule(
        "NULL_UNEXPLAINED", "warning", coverage.null_unexplained,
        "A measured figure that is null has its reason in `missing`.",
        "add the pointer with a code and a text to `missing`",
    ),
    Rule(
        "NOT_RECOMPUTABLE", "warning", coverage.not_recomputable,
        "What a reader needs to compute the figures again: the rate, MBU's inputs, the meter's"
        " coverage, the windows' times, the counts and the evidence.",
        "measure again with this version, which writes them",
    ),
    Rule(
        "GOODPUT_VS_RATE", "warning", figures.goodput_vs_rate,
        "Requests a second times mean answer length is tokens a second, within 3 % and two standard"
        " errors of the windows.",
        "look for requests that failed, or for answers counted wrongly",
    ),
    Rule(
        "MBU_HIGH", "warning", figures.mbu_high,
        "Memory rarely delivers more than 85 % of its rated bandwidth.",
        "check the model's geometry and data types, and the rated bandwidth",
    ),
    Rule(
        "TLS_UNVERIFIED", "warning", power.tls_unverified,
        "A meter was read over TLS without verifying its certificate.",
        "install the meter's certificate and set power.verify_tls to true",
    ),
    Rule(
        "UNTRUSTED_CLOCK", "warning", coverage.untrusted_clock,
        "Over 0.1 % between monotonic and wall clock: one of them was being corrected.",
        "measure on a machine whose clock is in step",
    ),
    Rule(
        "CLIENT_LAG", "warning", coverage.client_lag,
        "The load generator sent requests late, by more than half of what makes a window invalid.",
        "use a faster or less busy machine for the client",
    ),
    Rule(
        "BUFFERED", "warning", coverage.buffered,
        "Most token events came together with the one before, though tokens take time: a proxy"
        " holds the stream back, which lengthens TTFT, or the server sends several at a time.",
        "measure the server itself, without the proxy; with speculative decoding, say so",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a document."""

    severity: Severity
    code: str
    pointer: str
    """JSON pointer into the document."""
    text: str
    mend: str
    """The next step."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Everything that the rules say of a document."""

    findings: tuple[Finding, ...]
    not_applicable: tuple[tuple[str, str], ...]
    """Code of each rule that could not run, and what it would need."""


def checks(run: Run, data: dict[str, Any], hardware: Hardware | None, today: str) -> Checked:
    """Apply every rule.

    Args:
        run: the document.
        data: the same as parsed JSON.
        hardware: rated figures of its accelerator, None where there are none.
        today: ISO date.
    """
    subject = Subject(run, data, hardware, today)
    findings: list[Finding] = []
    not_applicable: list[tuple[str, str]] = []
    for rule in RULES:
        found = rule.find(subject)
        if isinstance(found, NotApplicable):
            not_applicable.append((rule.code, found.reason))
        else:
            findings += [
                Finding(rule.severity, rule.code, spot.pointer, _sentence(spot.text), rule.mend)
                for spot in found
            ]
    return Checked(tuple(findings), tuple(not_applicable))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
