"""Finds problems of a run or of a machine. Without torch: runs are diagnosed from the files of their directory."""

from r1lite.doctor.record import Finding
from r1lite.doctor.run import Record, diagnose, read

__all__ = ["Finding", "Record", "diagnose", "read"]
