"""What a run did, as one HTML file that opens from disk without a network; as diagrams alone; and live. No torch."""

from r1lite.report.build import Options, report_at_end, write_report
from r1lite.report.read import Run, read_run

__all__ = ["Options", "Run", "read_run", "report_at_end", "write_report"]
