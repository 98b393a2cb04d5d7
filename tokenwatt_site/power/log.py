"""Writes what a meter reads to a log, as it is read; the form is that of ``method.power_log``."""

import datetime as dt
import gzip
import json
from pathlib import Path
from typing import Any, BinaryIO, Self

from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.evidence import power_row
from tokenwatt_site.method.power_log import header_row
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power.meter import Now, now
from tokenwatt_site.power.opened import facts
from tokenwatt_site.power.sampler import Sampler


class PowerLog:
    """A file that is written as the meter is read."""

    def __init__(self, sampler: Sampler, path: Path, *, force: bool, clock: Now = now) -> None:
        """Take the meter and the place, ``….jsonl`` or ``….jsonl.gz``.

        Raises:
            UsageError: the file exists, or can't be written.
        """
        self.path = path
        self.readings = self.failed = 0
        self._sampler, self._clock = sampler, clock
        self._upto_s = self._t0_s = self._clock()
        try:
            self._file: BinaryIO = path.open("wb" if force else "xb")
        except OSError as error:
            raise UsageError(
                f"{path}: {error.strerror}", "choose another --out, or --force to replace it"
            ) from None

    def __enter__(self) -> Self:
        """Write the first line."""
        began = f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
        self._append([header_row(facts(self._sampler), began)])
        return self

    def __exit__(self, *_: object) -> None:
        """Write the rest."""
        self.write()
        self._file.close()

    def write(self) -> None:
        """Write what was read since the last time, one gzip member a block."""
        now_s = self._clock()
        new = [s for s in self._sampler.between(self._upto_s, now_s) if s.t_s > self._upto_s]
        self._upto_s = max([self._upto_s, *(s.t_s for s in new)])
        self._count(new)
        self._append([power_row(sample, 0, self._t0_s) for sample in new])

    def _count(self, new: list[PowerSample]) -> None:
        self.readings += len(new)
        self.failed += sum(sample.error is not None for sample in new)

    def _append(self, rows: list[dict[str, Any]]) -> None:
        data = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()
        self._file.write(gzip.compress(data, mtime=0) if self.path.suffix == ".gz" else data)
        self._file.flush()
