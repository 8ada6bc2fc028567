"""The demonstration: a throw-away project with a green and a red check, run for real."""

from __future__ import annotations

import os
import shutil
import tempfile

from ckdn import digest
from ckdn.app.project import open_project
from ckdn.app.run import run_check
from ckdn.model import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ckdn.runner import Interrupts

CONFIG = """\
[check.tests]
command = "{python} -m unittest"
parser = "unittest"
"""

CODE = """\
def mean(numbers):
    return sum(numbers) / len(numbers)
"""

TESTS = """\
import unittest

from stats import mean


class MeanTest(unittest.TestCase):
    def test_some(self):
        self.assertEqual(mean([1, 2, 3]), 2)

    def test_none(self):
        self.assertEqual(mean([]), 0)
"""

MENDED = """\
def mean(numbers):
    return sum(numbers) / len(numbers) if numbers else 0
"""


class Shown(Struct):
    """One step of the demonstration."""

    title: str
    command: str
    text: str
    """The digest in its text form."""
    json: str
    exit_code: int


def files() -> dict[str, str]:
    """The project's files."""
    return {"ckdn.toml": CONFIG, "stats.py": CODE, "test_stats.py": TESTS}


def demonstrate(environ: Mapping[str, str], stop: Interrupts | None) -> Iterator[Shown]:
    """Run the check red, mend the code, run it green. The project is removed afterwards."""
    folder = tempfile.mkdtemp(prefix="ckdn-demo-")
    try:
        for name, text in files().items():
            write(os.path.join(folder, name), text)
        yield step(folder, "red", environ, stop)
        write(os.path.join(folder, "stats.py"), MENDED)
        yield step(folder, "green", environ, stop)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write(path: str, text: str) -> None:
    """One file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def step(folder: str, title: str, environ: Mapping[str, str], stop: Interrupts | None) -> Shown:
    """One real run."""
    project = open_project(folder, os.path.join(folder, "ckdn.toml"), environ)
    result = run_check(project, "tests", environ=environ, stop=stop)
    text = digest.render_text(result.document)
    return Shown(title, "ckdn run tests", text, result.data.decode().rstrip("\n"), result.exit_code)
