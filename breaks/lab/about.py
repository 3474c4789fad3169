"""The kit's own version. Does not import the kit."""

from __future__ import annotations


def version() -> str:
    """Return the installed version of the kit, or `unknown` where it is not installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("break-the-loop")
    except PackageNotFoundError:
        return "unknown"
