"""An audit of any verifier: does it pay right answers, refuse wrong ones, and survive everything else?"""

from verifiers.audit.report import FamilyResult, Finding, Report
from verifiers.audit.run import audit

__all__ = ["FamilyResult", "Finding", "Report", "audit"]
