"""ckdn ("checkdown") runs a project's checks and emits one bounded, deterministic digest for each."""

__version__ = "2.0.0.dev0"
