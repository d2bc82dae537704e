"""Builds the report: one HTML file from run directories."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import html
import importlib.resources
import os
import re
import shlex
import time
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r1lite import __version__
from r1lite.errors import UserError
from r1lite.report import series, stages
from r1lite.report.forecast import alike, forecast
from r1lite.report.read import Run, command_of, is_pipeline, read_run
from r1lite.report.rollouts import Chunk, packed
from r1lite.run.files import check_links, replaced_file

FILE = "report.html"  # in a run directory
_RESOURCES = ("page.css", "page.js")
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Options:
    """Content of the report.

    Args:
        max_mib: maximum size of the file; a larger run is shown with fewer steps and groups.
        everything: include all steps and groups, in a folder beside the file.
    """

    max_mib: float = 10.0
    everything: bool = False


def file_name(runs: int) -> str:
    """The report's name in the directory of the first run, which keeps its own report beside that of several."""
    return FILE if runs == 1 else f"report-of-{runs}-runs.html"


def write_report(run_paths: Sequence[Path], out: Path, options: Options = Options()) -> Path:
    """Writes the report of one or several runs, or of a pipeline. Returns its path.

    Raises: UserError if a path holds no run, or the file can't be written.
    """
    beside = out.with_name(f"{out.stem}_files")
    made = Report(run_paths, options, beside=urllib.parse.quote(os.fsencode(beside.name)))
    try:
        with replaced_file(out, alone=False) as aside:  # a run that ends may write it too
            aside.write_text(made.html(), encoding="utf-8")
        if options.everything:
            beside.mkdir(exist_ok=True)
            for name, chunk in made.chunks.items():
                with replaced_file(beside / f"{name}.js", alone=False) as aside:
                    aside.write_text(f'r1lite_chunk("{name}","{chunk.data}")\n', encoding="ascii")
    except OSError as error:
        raise UserError(f"--out {out}: can't be written: {error.strerror or error}") from error
    return out


def report_at_end(run: Path, say: Callable[[str], object], *, if_missing: bool = False) -> None:
    """Writes the report into the directory of a run that ends, and prints its path. Errors never fail the run.

    Args:
        if_missing: keep an existing report; for a finished run that was killed before it wrote its report.
    """
    if if_missing and (run / FILE).exists():
        return
    try:
        say(f"report    {write_report([run], run / FILE)}")
    except Exception as error:  # errors in the report must not affect the run
        again = f"r1lite report {shlex.quote(str(run))}"
        say(f"the report could not be written ({type(error).__name__}: {error}); to try again: {again}")


class Report:
    """The content of a page.

    Args:
        live: the page polls its server for changes.
        beside: the folder of everything, as in an address.
    """

    def __init__(
        self, run_paths: Sequence[Path], options: Options = Options(), *, live: bool = False, beside: str = ""
    ) -> None:
        self.options, self.live, self.beside = options, live, beside
        self.pipeline: dict[str, Any] | None = None
        if len(run_paths) == 1 and is_pipeline(run_paths[0]):
            check_links(run_paths[0])
            self.pipeline, runs = stages.pipeline(run_paths[0])
            title = f"{run_paths[0].resolve().name}: pipeline"
        else:
            runs = [read_run(place, name) for place, name in zip(run_paths, _names(run_paths), strict=True)]
            title = ", ".join(run.name for run in runs)
        self.title = title.encode("utf-8", "backslashreplace").decode()  # a folder's name may be no UTF-8
        self.forecasts = _forecasts(runs)
        self.chunks: dict[str, Chunk] = {}  # name of the HTML element -> chunk
        budget = int(options.max_mib * _MIB)
        parts = [self._part(run) for run in runs]
        spent = len(_FRAME) + len(packed(self._head(parts))) + sum(len(_resource(name)) for name in _RESOURCES)
        share = max(0, budget - spent) // max(1, len(runs))
        for number, run in enumerate(runs):
            found = stages.chunks(run, share, whole=options.everything)
            parts[number]["extra"] = found.extra
            parts[number]["chunks"] = []
            for chunk in found.chunks:
                name = f"c{number}-{re.sub('[^a-z0-9]+', '-', chunk.label)}"
                if live:  # a page that polls keeps a chunk by its name, but a run's number and content may change
                    name += f"-{hashlib.sha256(chunk.data.encode()).hexdigest()[:12]}"
                self.chunks[name] = chunk
                parts[number]["chunks"].append(
                    {"id": name, "step": chunk.step, "label": chunk.label, "groups": chunk.groups, "of": chunk.of}
                )
            parts[number]["recurring"] = _recurring(found.chunks)
            parts[number]["steps_with_rollouts"] = found.steps
        self.head = self._head(parts)

    def html(self) -> str:
        """Returns the page."""
        data = "".join(_element(name, chunk.data) for name, chunk in self.chunks.items())
        embedded = "" if self.options.everything or self.live else data
        script = _resource("page.js")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = f"default-src 'none'; script-src 'sha256-{digest}' 'strict-dynamic'; style-src 'unsafe-inline'"
        if self.live:
            policy += "; connect-src 'self'"
        filled = {
            "@TITLE@": html.escape(self.title),
            "@POLICY@": policy,
            "@STYLE@": _resource("page.css"),
            "@DATA@": _element("head", packed(self.head)) + embedded,
            "@SCRIPT@": script,
        }
        return re.sub("|".join(filled), lambda mark: filled[mark[0]], _FRAME)  # at once: a title may contain a mark

    def _head(self, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {
            "title": self.title,
            "made": time.strftime("%Y-%m-%d %H:%M"),
            "version": __version__,
            "live": self.live,
            "beside": self.beside if self.options.everything else None,
            "metrics": series.described(),
            "pipeline": self.pipeline,
            "forecasts": self.forecasts,
            "runs": list(parts),
        }

    def _part(self, run: Run) -> dict[str, Any]:
        config = {key: value for key, value in run.record.config.items() if value is not None}
        return {
            "name": run.name,
            "path": str(run.path),
            "quoted": shlex.quote(str(run.path)),
            "stage": run.stage,
            "status": run.status,
            "facts": stages.facts(run),
            "command": command_of(run),
            "config": config,
            "like": run.like,
            "seed": config.get("seed"),
            "curves": series.columns(run.record.metrics),
            "evaluations": run.evaluations,
            "findings": run.findings,
            "learnt": run.summary.get("learnt"),
        }


def _forecasts(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Returns the forecasts of runs with enough evaluations, each with the indices of its runs."""
    found = []
    for group in alike(runs):
        # Too few evaluations, or numpy is not installed, which is optional.
        with contextlib.suppress(UserError, ModuleNotFoundError):
            numbers = [next(n for n, run in enumerate(runs) if run is one) for one in group]
            found.append({**forecast(group).as_dict(), "numbers": numbers})
    return found


def _recurring(chunks: Sequence[Chunk]) -> dict[str, list[int]]:
    """Returns the problems that occur in several chunks, with the indices of the chunks."""
    found: dict[str, list[int]] = {}
    for place, chunk in enumerate(chunks):
        for name in dict.fromkeys(chunk.problems):
            found.setdefault(name, []).append(place)
    often = sorted(((name, at) for name, at in found.items() if len(at) > 1), key=lambda item: (-len(item[1]), item[0]))
    return dict(often[:2000])


def _names(run_paths: Sequence[Path]) -> list[str]:
    """Returns short names of the runs, longer if two would be equal."""
    names = [place.resolve().name for place in run_paths]
    return [
        name if names.count(name) == 1 else "/".join(place.resolve().parts[-2:])
        for name, place in zip(names, run_paths, strict=True)
    ]


def _element(name: str, data: str) -> str:
    return f'<script type="text/plain" id="{name}">{data}</script>\n'


def _resource(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="@POLICY@">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@TITLE@ - r1lite</title>
<style>
@STYLE@</style>
</head>
<body>
<div id="app"><noscript>This page needs the script that it contains: allow scripts for it.</noscript></div>
@DATA@<script>@SCRIPT@</script>
</body>
</html>
"""
