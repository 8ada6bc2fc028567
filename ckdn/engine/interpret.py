"""The engine's door: a loaded spec and its inputs in, facts out.

Three steps: :mod:`plan` connects what the spec asks for, :mod:`reading` feeds the inputs to it (once a pass), and
:mod:`conclude` makes numbers, guards, gates and proof of what came of it.
"""

from __future__ import annotations

from ckdn.engine.conclude import conclude
from ckdn.engine.plan import Plan, Settings
from ckdn.engine.reading import Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ckdn.engine.source import Source, Unread
    from ckdn.model import Facts
    from ckdn.spec.types import Spec

    Inputs = Mapping[str, tuple[Source, ...] | Unread]

__all__ = ["Settings", "interpret"]


def interpret(spec: Spec, inputs: Inputs, settings: Settings, includes: Mapping[str, Facts] | None = None) -> Facts:
    """The facts of one run.

    ``inputs`` has a value for every input of the spec and for ``log``; ``includes`` the facts of included specs (one
    whose file is missing stays out). Never raises for what the inputs hold: that ends up in ``problems``.
    """
    plan = Plan(spec, settings)
    reading = Reading(plan, inputs)
    reading.run()
    return conclude(plan, reading, includes or {})
