"""What is on the shelves."""

from shop.cart import total


class Item:
    def __init__(self, name: str, cents: int) -> None:
        self.name = name
        self.cents = cents

    def label(self, width: int) -> str:
        return self.name.ljust(width)


class Bundle(Item):
    def label(self, width: int) -> str:
        return self.name.rjust(width)


def find(items: list[Item], name: str) -> Item | None:
    return next((item for item in items if item.name == name), None)


def price(items: list[Item], name: str) -> int:
    item = find(items, name)
    return item.cents if item else 0


def worth(items: list[Item]) -> int:
    return total([item.cents for item in items])


def names(items: list[Item]) -> list[str]:
    return [item.name for item in items]


def count(items: list[Item]) -> int:
    return len(items)
