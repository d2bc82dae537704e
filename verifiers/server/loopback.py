"""Addresses that other machines can't reach."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """True if only this machine can reach the address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
