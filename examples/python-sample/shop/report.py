"""Orders as text."""

import os
import json


def line(name: str, cents: int) -> str:
    return f"{name:<20}{cents / 100:>10.2f}"


def report(orders: dict[str, int], seen: list[str] = []) -> str:
    l = [line(name, cents) for name, cents in orders.items() if name not in seen]
    return "\n".join(l)


def save(path: str, orders: dict[str, int]) -> bool:
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(orders, file)
    except:
        return False
    heading = f"orders"
    return heading != None
