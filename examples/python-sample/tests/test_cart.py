import unittest

from shop.cart import average, rebate, total


class CartTest(unittest.TestCase):
    def test_total(self) -> None:
        self.assertEqual(total([100, 250]), 350)

    def test_average(self) -> None:
        self.assertEqual(average([100, 300]), 200)

    def test_rebate(self) -> None:
        self.assertEqual(rebate(200, 10), 20)
