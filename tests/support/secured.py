"""A broker that asks for certificates, passwords and rights, behind several listeners, so that it is started once.

PLAINTEXT   its administrator, who may do everything
SASL_SSL    TLS with the CA `ca`, and a password (PLAIN)
SSL         TLS in both directions: a client shows a certificate, whose common name is its principal
"""

import asyncio
import datetime
import ipaddress
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int8, Int16, Int32, Schema, String
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from shoal.agents.broker.process import HOST, free_port
from tests.support.kafka import Kafka

PASSWORDS = {"worker": "correct horse", "stranger": "battery staple"}
TOPIC, GROUP, TRANSACTIONAL_ID = 2, 3, 5
READ, WRITE, CREATE, DESCRIBE_CONFIGS = 3, 4, 5, 10
LITERAL, PREFIXED, ALLOW = 3, 4, 3
TEXT = String("utf-8")

SERVER = """
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller},SASL_SSL://{host}:{sasl},SSL://{host}:{tls}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
ssl.keystore.type=PEM
ssl.keystore.location={folder}/broker.both
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
listener.name.ssl.ssl.client.auth=required
ssl.principal.mapping.rules=RULE:^CN=([^,]+).*$/$1/,DEFAULT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_ssl.sasl.enabled.mechanisms=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required {users};
"""


class Acl(NamedTuple):
    """One right of the principal `worker`, as Kafka's protocol has it."""

    kind: int
    name: str
    pattern: int
    operation: int

    @property
    def fields(self) -> tuple[int, str, int, str, str, int, int]:
        return (self.kind, self.name, self.pattern, "User:worker", "*", self.operation, ALLOW)


def documented(app: str, source: str) -> dict[str, Acl]:
    """What docs/operations.md says that a worker needs."""
    internal = {"Read": READ, "Write": WRITE, "Create": CREATE, "DescribeConfigs": DESCRIBE_CONFIGS}
    return {
        "source Read": Acl(TOPIC, source, LITERAL, READ),
        "source DescribeConfigs": Acl(TOPIC, source, LITERAL, DESCRIBE_CONFIGS),
        **{f"APP.* {name}": Acl(TOPIC, f"{app}.", PREFIXED, operation) for name, operation in internal.items()},
        "transactional id Write": Acl(TRANSACTIONAL_ID, f"{app}.", PREFIXED, WRITE),
        "group Read": Acl(GROUP, app, LITERAL, READ),
    }


class SecuredKafka(Kafka):
    """The broker, its certificates, and who may do what."""

    def __init__(self) -> None:
        super().__init__()
        self.sasl, self.tls = free_port(), free_port()
        self.data.mkdir(parents=True, exist_ok=True)
        ca, other = _certificate("ca"), _certificate("other")
        self._save("ca", ca)
        self._save("other", other)
        for name in ("broker", "worker"):
            self._save(name, _certificate(name, ca))
        for user, password in PASSWORDS.items():
            (self.data / f"{user}.password").write_text(f"{password}\n")
        (self.data / "wrong.password").write_text("wrong\n")

    def _configure(self) -> None:
        super()._configure()
        path = self.data / "server.properties"
        lines = path.read_text().splitlines()
        (controller,) = (line.rpartition(":")[2] for line in lines if line.startswith("controller.quorum.voters="))
        users = " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
        more = SERVER.format(
            host=HOST, port=self.port, controller=controller, sasl=self.sasl, tls=self.tls, folder=self.data,
            users=users,
        )  # fmt: skip
        kept = [line for line in lines if not line.startswith("listeners=")]
        path.write_text("\n".join(kept) + more)

    def _save(self, name: str, pair: tuple[ec.EllipticCurvePrivateKey, x509.Certificate]) -> None:
        key = pair[0].private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        certificate = pair[1].public_bytes(serialization.Encoding.PEM)
        (self.data / f"{name}.key").write_bytes(key)
        (self.data / f"{name}.pem").write_bytes(certificate)
        (self.data / f"{name}.both").write_bytes(key + certificate)

    def file(self, name: str) -> Path:
        """A certificate, key or password."""
        return self.data / name

    def grant(self, acls: Iterable[Acl]) -> None:
        asyncio.run(_send(self.bootstrap, CreateAcls(acls)))

    def revoke(self, acls: Iterable[Acl]) -> None:
        asyncio.run(_send(self.bootstrap, DeleteAcls(acls)))


def _certificate(
    name: str, signer: tuple[ec.EllipticCurvePrivateKey, x509.Certificate] | None = None
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    """A key and its certificate; without a signer that of a CA."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer_key, issuer = (signer[0], signer[1].subject) if signer else (key, subject)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(HOST))])
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=signer is None, crl_sign=signer is None, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.BasicConstraints(signer is None, None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if signer:
        builder = builder.add_extension(names, critical=False)
    return key, builder.sign(issuer_key, hashes.SHA256())


async def _send(bootstrap: str, request: "CreateAcls | DeleteAcls") -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        response = await admin._send_to_controller(request)
        assert [result[0] for result in response.results] == [0] * request.count, response
    finally:
        await admin.close()


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
