"""Fills the pages: each {name} must be one of NAMES; exit code 1 and a line each for others."""

import pathlib
import re
import sys

NAMES = {"title", "date", "total"}


def main() -> int:
    pages = sorted(pathlib.Path("pages").glob("*.txt"))
    unknown = 0
    for page in pages:
        for number, text in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for name in re.findall(r"\{(\w+)\}", text):
                if name not in NAMES:
                    unknown += 1
                    print(f"{page.as_posix()}:{number}: unknown name '{name}'")
    print(f"{len(pages)} pages, {unknown} unknown names")
    return 1 if unknown or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
