"""What is wrong with a run, or with a machine. No torch: runs are judged by the files of their directory."""

from r1lite.doctor.findings import Finding
from r1lite.doctor.run import Record, diagnose, read

__all__ = ["Finding", "Record", "diagnose", "read"]
