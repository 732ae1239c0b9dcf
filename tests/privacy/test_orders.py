"""At no order of file runs, workers, kills, outages and restores does a key meet two streams."""

from hypothesis import settings

from tests.support.effort import tries
from tests.support.orders import Orders

TestOrders = Orders.TestCase
TestOrders.settings = settings(max_examples=tries(4), stateful_step_count=10)
