"""What is on the shelves."""

from shop.cart import total


class Item:
    def __init__(self, name: str, cents: int) -> None:
        self.name = name
        self.cents = cents

    def label(self, width: int) -> str:
        return self.name.ljust(width)


class Bundle(Item):
    def label(self, width: str) -> str:
        return self.name + width


def find(items: list[Item], name: str) -> Item | None:
    return next((item for item in items if item.name == name), None)


def price(items: list[Item], name: str) -> int:
    return find(items, name).cents


def worth(items: list[Item]) -> int:
    return total([item.name for item in items])


def names(items: list[Item]) -> list[str]:
    return ", ".join(item.name for item in items)


def count(items) -> int:
    return len(items)
