"""Many more orders than `tests/privacy/test_orders.py` tries: `make test-orders`."""

from hypothesis import settings

from tests.support.effort import tries
from tests.support.orders import Orders

TestManyOrders = Orders.TestCase
TestManyOrders.settings = settings(max_examples=tries(300), stateful_step_count=20)
