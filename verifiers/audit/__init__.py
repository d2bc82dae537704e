"""Audit of any verifier: whether it pays right answers, refuses wrong ones, and survives everything else."""

from verifiers.audit.report import FamilyResult, Finding, Report
from verifiers.audit.run import audit

__all__ = ["FamilyResult", "Finding", "Report", "audit"]
