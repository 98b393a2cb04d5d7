"""``tokenwatt-site demo``: the whole path within two minutes, on any machine."""

import datetime as dt
import shutil
import sys
from pathlib import Path
from typing import Any

import click

EPILOG = """\b
Example:
  tokenwatt-site demo --out site
"""
RUN = Path("runs") / "demo-site" / "demo.json"
STAGE = Path("runs") / "demo-site" / "content"
DEMO_ID = "demo"


@click.command(epilog=EPILOG)
@click.option(
    "--out", type=click.Path(path_type=Path), default="site", show_default=True, help="The site."
)
@click.option("--json", "as_json", is_flag=True, help="Events and result as JSON lines.")
def demo(*, out: Path, as_json: bool) -> None:
    """Measure the embedded engine, report the run and build a site with it.

    Nothing is needed but this program: the engine is simulated and its figures are marked so. The
    content folder, where there is one, is shown on the site too and isn't changed.
    """
    from tokenwatt_site import measure as conductor
    from tokenwatt_site.cli.progress import teller
    from tokenwatt_site.documents.doors import load_spec
    from tokenwatt_site.method.join import Wishes
    from tokenwatt_site.publish.build import Wanted, build
    from tokenwatt_site.publish.report import report
    from tokenwatt_site.resources import resource

    path = resource("specs") / "demo.spec.yaml"
    spec = load_spec(path)
    options = conductor.Options.of(
        spec, spec_file=path, label="", role="baseline", out=RUN, force=True
    )
    say = _silent if as_json else _aloud
    say("1/3 measuring the embedded engine")
    measured = conductor.measure(spec, options, teller(as_json=as_json))
    say("2/3 reporting the run")
    content = _stage()
    wishes = Wishes(id=DEMO_ID, title="Embedded engine, demo run")
    report((RUN,), wishes, content / "runs" / f"{DEMO_ID}.json", force=True)
    say("3/3 building the site")
    today = dt.datetime.now(dt.UTC).date().isoformat()
    built = build(Wanted(content=content, out=out, today=today, drafts=True))
    _close(measured, built, as_json=as_json)
    sys.exit(measured.exit_code)


def _stage() -> Path:
    """Return a content folder of its own: the one here, if any, to which the demo run is added."""
    shutil.rmtree(STAGE, ignore_errors=True)
    if Path("content").is_dir():
        shutil.copytree("content", STAGE, symlinks=True)
    else:
        (STAGE / "runs").mkdir(parents=True)
        (STAGE / "site.yaml").write_text("title: tokenwatt\n", encoding="utf-8")
    return STAGE


def _aloud(text: str) -> None:
    click.echo(text, err=True)


def _silent(text: str) -> None:
    del text


def _close(measured: Any, built: Any, *, as_json: bool) -> None:
    config = measured.run.configs[0]
    page = built.out / "runs" / DEMO_ID / "index.html"
    energy = config.energy.j_per_output_token if config.energy else None
    if as_json:
        import json

        click.echo(
            json.dumps(
                {
                    "event": "done",
                    "site": str(built.out),
                    "url": built.url,
                    "run": page.as_uri(),
                    "rate_rps": config.rate_rps,
                    "j_per_output_token": energy,
                    "exit_code": measured.exit_code,
                }
            )
        )
        return
    click.echo(f"{measured.run.verdict.word}: {measured.run.verdict.text}")
    click.echo(f"the site is in {built.out}: {built.runs} runs, {built.pages} pages")
    click.echo(f"open {built.url}")
    click.echo(f"the run is at {page.as_uri()}")
