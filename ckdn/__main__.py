"""``python -m ckdn`` is the console script ``ckdn``."""

from ckdn.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
