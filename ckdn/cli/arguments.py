"""What the commands' argument parsers share."""

from __future__ import annotations

import argparse
import os


def add(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str, description: str
) -> argparse.ArgumentParser:
    """One command."""
    return commands.add_parser(
        name, help=summary, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_project(parser: argparse.ArgumentParser) -> None:
    """``--config`` and ``--cwd``."""
    parser.add_argument(
        "--config", metavar="PATH", default=os.environ.get("CKDN_CONFIG") or None, help="the config file (CKDN_CONFIG)"
    )
    parser.add_argument(
        "--cwd", metavar="DIR", default=os.environ.get("CKDN_CWD") or None, help="the folder to work in (CKDN_CWD)"
    )
