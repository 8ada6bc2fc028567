"""Large reports in flat memory: ten times the input needs no more than a little more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads a process's peak memory from /proc"),
]

CHILD = Path(__file__).with_name("streaming_child.py")


def peak(form: str, count: int) -> int:
    """The peak memory of a process that reads so many items, in KiB."""
    done = subprocess.run(
        [sys.executable, str(CHILD), form, str(count)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("form", ["xml", "ndjson", "text"])
def test_ten_times_the_input_in_the_same_memory(form: str) -> None:
    small, large = peak(form, 30_000), peak(form, 300_000)
    assert large - small < 8 << 10
    assert large < 1.5 * small
