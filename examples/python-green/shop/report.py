"""Orders as text."""

import json
from collections.abc import Collection


def line(name: str, cents: int) -> str:
    return f"{name:<20}{cents / 100:>10.2f}"


def report(orders: dict[str, int], seen: Collection[str] = ()) -> str:
    lines = [line(name, cents) for name, cents in orders.items() if name not in seen]
    return "\n".join(lines)


def save(path: str, orders: dict[str, int]) -> bool:
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(orders, file)
    except OSError:
        return False
    return True
