"""Prices are whole cents."""


def total(prices: list[int]) -> int:
    return sum(prices)


def average(prices: list[int]) -> int:
    return total(prices) // len(prices)


def rebate(price: int, percent: int) -> int:
    if not 0 <= percent <= 100:
        raise ValueError(f"percent must be between 0 and 100, not {percent}")
    return price * percent // 100
