import unittest

from shop.suppliers import cheapest


class SuppliersTest(unittest.TestCase):
    def test_cheapest(self) -> None:
        self.assertEqual(cheapest({"north": 3, "south": 2}), "south")
