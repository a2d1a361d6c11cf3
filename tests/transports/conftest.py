"""Lets the tests import what they share with each other and with their server scripts."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "servers")]
