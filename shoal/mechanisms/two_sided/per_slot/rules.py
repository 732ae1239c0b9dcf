"""Rules between the parts of statistics per slot under relation add-remove."""

from shoal.mechanisms.parts.rules import Rule, start_and_end
from shoal.mechanisms.two_sided.rules import finding

RULES: tuple[Rule, ...] = (start_and_end, finding)
