"""Rights of Kafka's principals: those that the page on operations lists, and how tests give and take them.

aiokafka knows the requests only in part, so they are described here, as Kafka's protocol has them.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import DescribeAclsRequest_v1
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int8, Int16, Int32, Schema, String

TOPIC, GROUP, TRANSACTIONAL_ID = 2, 3, 5
READ, WRITE, CREATE, DELETE, DESCRIBE_CONFIGS = 3, 4, 5, 6, 10
LITERAL, PREFIXED, ALLOW = 3, 4, 3
ANY = 1
TEXT = String("utf-8")


class Acl(NamedTuple):
    """One right, as Kafka's protocol has it."""

    kind: int
    name: str
    pattern: int
    operation: int
    principal: str = "worker"

    @property
    def fields(self) -> tuple[int, str, int, str, str, int, int]:
        return (self.kind, self.name, self.pattern, f"User:{self.principal}", "*", self.operation, ALLOW)


def documented(app: str, source: str) -> dict[str, Acl]:
    """What docs/reference/access.md says that a worker needs."""
    internal = {"Read": READ, "Write": WRITE, "Create": CREATE, "DescribeConfigs": DESCRIBE_CONFIGS}
    return {
        "source Read": Acl(TOPIC, source, LITERAL, READ),
        "source DescribeConfigs": Acl(TOPIC, source, LITERAL, DESCRIBE_CONFIGS),
        **{f"APP.* {name}": Acl(TOPIC, f"{app}.", PREFIXED, operation) for name, operation in internal.items()},
        "APP.bound.* Delete": Acl(TOPIC, f"{app}.bound.", PREFIXED, DELETE),
        "transactional id Write": Acl(TRANSACTIONAL_ID, f"{app}.", PREFIXED, WRITE),
        "group Read": Acl(GROUP, app, LITERAL, READ),
    }


def grant(bootstrap: str, acls: Iterable[Acl]) -> None:
    """Give rights, and return when every broker knows."""
    granted = list(acls)
    asyncio.run(_change(bootstrap, CreateAcls(granted), lambda known: known.issuperset(granted)))


def revoke(bootstrap: str, acls: Iterable[Acl]) -> None:
    """Take rights, and return when every broker knows."""
    revoked = list(acls)
    asyncio.run(_change(bootstrap, DeleteAcls(revoked), lambda known: known.isdisjoint(revoked)))


async def _change(bootstrap: str, request: "CreateAcls | DeleteAcls", done: Callable[[set[Acl]], bool]) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        response = await admin._send_to_controller(request)
        assert [result[0] for result in response.results] == [0] * request.count, response
        for node in admin._client.cluster.brokers():
            while not done(await _known(admin, node.nodeId)):
                await asyncio.sleep(0.05)
    finally:
        await admin.close()


async def _known(admin: AIOKafkaAdminClient, node: int) -> set[Acl]:
    """What a broker has heard of by now."""
    response = await admin._send_request_to_node(node, DescribeAcls())
    return {
        Acl(kind, name, pattern, operation, principal.removeprefix("User:"))
        for kind, name, pattern, rights in response.resources
        for principal, _, operation, _ in rights
    }


ACL = (
    ("resource_type", Int8), ("resource_name", TEXT), ("pattern_type", Int8), ("principal", TEXT), ("host", TEXT),
    ("operation", Int8), ("permission", Int8),
)  # fmt: skip


class CreateAclsResponse1(Response):  # type: ignore[misc]  # aiokafka is untyped
    API_KEY = 30
    API_VERSION = 1
    SCHEMA = Schema(("throttle_time_ms", Int32), ("results", Array(("error", Int16), ("message", TEXT))))


class CreateAclsRequest1(RequestStruct):  # type: ignore[misc]  # aiokafka is untyped
    API_KEY = 30
    API_VERSION = 1
    RESPONSE_TYPE = CreateAclsResponse1
    SCHEMA = Schema(("acls", Array(*ACL)))


class CreateAcls(Request[CreateAclsRequest1]):  # type: ignore[misc]  # aiokafka is untyped
    API_KEY = 30

    def __init__(self, acls: Iterable[Acl]) -> None:
        self._acls = [acl.fields for acl in acls]
        self.count = len(self._acls)

    def build(self, request_struct_class: type[CreateAclsRequest1]) -> CreateAclsRequest1:
        return request_struct_class(self._acls)


class DeleteAclsResponse1(Response):  # type: ignore[misc]  # aiokafka is untyped
    API_KEY = 31
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("results", Array(("error", Int16), ("message", TEXT),
                          ("matching", Array(("error", Int16), ("message", TEXT), *ACL)))),
    )  # fmt: skip


class DeleteAclsRequest1(RequestStruct):  # type: ignore[misc]  # aiokafka is untyped
    API_KEY = 31
    API_VERSION = 1
    RESPONSE_TYPE = DeleteAclsResponse1
    SCHEMA = Schema(("filters", Array(*ACL)))


class DeleteAcls(Request[DeleteAclsRequest1]):  # type: ignore[misc]  # aiokafka is untyped
    API_KEY = 31

    def __init__(self, acls: Iterable[Acl]) -> None:
        self._acls = [acl.fields for acl in acls]
        self.count = len(self._acls)

    def build(self, request_struct_class: type[DeleteAclsRequest1]) -> DeleteAclsRequest1:
        return request_struct_class(self._acls)


class DescribeAcls(Request[DescribeAclsRequest_v1]):  # type: ignore[misc]  # aiokafka is untyped
    API_KEY = 29

    def build(self, request_struct_class: type[DescribeAclsRequest_v1]) -> DescribeAclsRequest_v1:
        return request_struct_class(ANY, None, ANY, None, None, ANY, ANY)
