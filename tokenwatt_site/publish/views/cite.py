"""How to cite a run: BibTeX, CSL-JSON, plain text."""

import json
from dataclasses import dataclass

from tokenwatt_site.documents.run import Run
from tokenwatt_site.publish.model import SiteConfig
from tokenwatt_site.publish.views.headline import Source
from tokenwatt_site.publish.views.links import run_address
from tokenwatt_site.publish.views.standing import is_quick, is_simulated

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


@dataclass(frozen=True, slots=True)
class Citation:
    """One run, cited three ways."""

    bibtex: str
    csl: str
    plain: str


def citation(source: Source, config: SiteConfig) -> Citation:
    """Return the citations of a document; without a base address they name no URL."""
    run = source.run
    day = run.published or (run.started or "")[:10]
    address = config.base_url + run_address(run.id) if config.base_url else ""
    return Citation(
        _bibtex(run, config, (day, address, _note(source))),
        _csl(run, config, day, address),
        _plain(run, config, day, address),
    )


def _note(source: Source) -> str:
    parts: list[str] = []
    if source.figures.j_per_token is not None:
        parts.append(f"{source.figures.j_per_token:.4g} J per output token, {source.scope}")
    parts.append(f"n = {source.config.repeats}")
    parts += ["quick mode"] if is_quick(source.run) else []
    parts += ["simulated"] if is_simulated(source.run) else []
    return ", ".join(parts)


def _bibtex(run: Run, config: SiteConfig, facts: tuple[str, str, str]) -> str:
    day, address, note = facts
    fields = [("author", f"{{{_latex(config.author)}}}" if config.author else "")]
    fields.append(("title", _latex(run.title)))
    if day:
        fields += [("year", day[:4]), ("month", f"={_MONTHS[int(day[5:7]) - 1]}")]
    fields += [("version", str(run.version or 1)), ("url", address), ("note", _latex(note))]
    lines = [
        f"  {name:<7} = {value[1:] if value.startswith('=') else '{' + value + '}'}"
        for name, value in fields
        if value
    ]
    return f"@misc{{{run.id},\n" + ",\n".join(lines) + "\n}\n"


def _latex(text: str) -> str:
    return "".join(_ESCAPES.get(letter, letter) for letter in " ".join(text.split()))


def _csl(run: Run, config: SiteConfig, day: str, address: str) -> str:
    item: dict[str, object] = {"id": run.id, "type": "dataset", "title": run.title}
    if config.author:
        item["author"] = [{"literal": config.author}]
    if day:
        item["issued"] = {"date-parts": [[int(part) for part in day.split("-")]]}
    item["version"] = str(run.version or 1)
    if address:
        item["URL"] = address
    return json.dumps([item], ensure_ascii=False, indent=2) + "\n"


def _plain(run: Run, config: SiteConfig, day: str, address: str) -> str:
    who = f"{config.author}. " if config.author else ""
    title = " ".join(run.title.split())
    parts = [f"{who}{title}", f"version {run.version or 1}", day, address]
    return ", ".join(part for part in parts if part) + ".\n"
