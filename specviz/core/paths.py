"""Where the project's own files lie."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
ASSETS = PROJECT / "assets"
