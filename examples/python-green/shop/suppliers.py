"""Who sells what."""


def cheapest(offers: dict[str, int]) -> str:
    return min(offers, key=lambda name: offers[name])
