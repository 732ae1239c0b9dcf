"""The contributions that wait to be sent, kept by the kernel, which writes their JSON and cuts it into messages."""

from typing import Any

from shoal.mechanisms.noise.keyed import pseudonym_key
from shoal.models.records import Partial, Row, Written
from shoal.stream.contributions import Part, Send
from shoal.stream.topic import Metric, TopicPlan


class Queues:
    """The kernel's queues, one for each metric of a topic; the twin is `Outlets`."""

    def __init__(self, module: Any, plan: TopicPlan) -> None:
        self._module, self._homes = module, plan.contributions_partitions
        self.each = [self._queue(metric) for metric in plan.metrics]

    def _queue(self, metric: Metric) -> Any:
        bounder = metric.bounder
        key = pseudonym_key(metric.key)
        length = None if metric.length is None else metric.length.microseconds
        return self._module.Queue(metric.name, metric.label, self._homes, key, length, bounder.merges, bounder.parts)

    @property
    def sends(self) -> list[Send]:
        return [queue.send for queue in self.each]

    def take(self) -> list[list[Part]]:
        taken: list[list[tuple[bytes, bytes]]] = self._module.take(self.each, self._homes)
        return [[(Written[Row](rows), Written[Partial](partials)) for rows, partials in parts] for parts in taken]
