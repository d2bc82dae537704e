"""Writes an HTML report of a run that opens offline, SVG charts, and a live page. Does not load torch."""

from r1lite.report.build import Options, report_at_end, write_report
from r1lite.report.read import Run, read_run

__all__ = ["Options", "Run", "read_run", "report_at_end", "write_report"]
