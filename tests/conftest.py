"""Settings of hypothesis and the fixtures that several test modules share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadline: no test of ours depends on the clock. The fast tier is the same on every machine and run (derandomize);
# the full tier searches further, each time elsewhere.
settings.register_profile("fast", deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "full", deadline=None, max_examples=2000, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("CKDN_TEST_PROFILE", "fast"))

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout (or the unpacked sdist) that the tests belong to."""
    return ROOT
