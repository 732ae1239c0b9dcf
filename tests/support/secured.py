"""Brokers that ask for certificates, passwords and rights, behind several listeners, so that they are started once.

PLAINTEXT   their administrator, who may do everything, and the brokers among themselves
SASL_SSL    TLS with the CA `ca`, and a password (PLAIN or SCRAM-SHA-512)
SSL         TLS in both directions: a client shows a certificate, whose common name is its principal
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from shoal.agents.audit.session import load_config
from shoal.agents.broker.process import HOST, free_port
from shoal.agents.kafka.settings import KafkaSettings, settings_of
from tests.support import acls, certificates
from tests.support.acls import Acl, documented
from tests.support.cluster import Cluster, Node
from tests.support.deployment import Deployment
from tests.support.kafka import Record

PASSWORDS = {"worker": "correct horse", "producer": "paper clip", "stranger": "battery staple"}
SIGNED = {"broker": "ca", "worker": "ca", "producer": "ca", "stranger": "ca", "foreign": "other"}  # by which CA
LOGIN = "org.apache.kafka.common.security.{module} required{users};"


class SecuredCluster(Cluster):
    """Brokers with certificates and passwords, and who may do what."""

    def __init__(self, folder: Path, size: int = 3) -> None:
        super().__init__(folder, size)
        self._folder = folder
        self._doors = {node.number: (free_port(), free_port()) for node in self.nodes}
        authorities = {name: certificates.certify(name) for name in ("ca", "other")}
        signed = {name: certificates.certify(name, authorities[ca]) for name, ca in SIGNED.items()}
        signed["expired"] = certificates.certify("worker", authorities["ca"], days=-1)
        for name, pair in (authorities | signed).items():
            certificates.save(folder, name, pair)
        for user, password in (PASSWORDS | {"wrong": "wrong"}).items():
            self.file(f"{user}.password").write_text(f"{password}\n")

    @property
    def by_password(self) -> str:
        """Addresses at which brokers ask for a password."""
        return ",".join(f"localhost:{sasl}" for sasl, _ in self._doors.values())

    @property
    def by_certificate(self) -> str:
        """Addresses at which brokers ask for a certificate."""
        return ",".join(f"localhost:{tls}" for _, tls in self._doors.values())

    def file(self, name: str) -> Path:
        """A certificate, key or password."""
        return self._folder / name

    def settings(self, node: Node) -> dict[str, str]:
        single, (sasl, tls) = super().settings(node), self._doors[node.number]
        users = "".join(f' user_{user}="{password}"' for user, password in PASSWORDS.items())
        login = "listener.name.sasl_ssl.{}.sasl.jaas.config"
        return single | {
            "listeners": f"{single['listeners']},SASL_SSL://{HOST}:{sasl},SSL://{HOST}:{tls}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.file("broker.both")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.file("ca.pem")),
            "listener.name.ssl.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            login.format("plain"): LOGIN.format(module="plain.PlainLoginModule", users=users),
            login.format("scram-sha-512"): LOGIN.format(module="scram.ScramLoginModule", users=""),
        }

    def format_options(self) -> list[str]:
        credentials = [f'SCRAM-SHA-512=[name={user},password="{password}"]' for user, password in PASSWORDS.items()]
        return [option for credential in credentials for option in ("--add-scram", credential)]

    def grant(self, granted: Iterable[Acl]) -> None:
        acls.grant(self.bootstrap, granted)

    def revoke(self, revoked: Iterable[Acl]) -> None:
        acls.revoke(self.bootstrap, revoked)


Section = dict[str, Any]  # a [kafka] section
Entrance = Callable[..., Section]


def by_password(secured: SecuredCluster, user: str = "worker", mechanism: str = "PLAIN", **changes: Any) -> Section:
    """A [kafka] section of a user with a password; `changes` of None leave a key out."""
    return _section(
        {
            "brokers": secured.by_password, "security_protocol": "SASL_SSL", "sasl_mechanism": mechanism,
            "sasl_username": user, "sasl_password_file": str(secured.file(f"{user}.password")),
            "ssl_cafile": str(secured.file("ca.pem")),
        },
        changes,
    )  # fmt: skip


def by_scram(secured: SecuredCluster, user: str = "worker", **changes: Any) -> Section:
    """The same with SCRAM."""
    return by_password(secured, user, "SCRAM-SHA-512", **changes)


def by_certificate(secured: SecuredCluster, user: str = "worker", **changes: Any) -> Section:
    """A [kafka] section of a user with a certificate."""
    return _section(
        {
            "brokers": secured.by_certificate, "security_protocol": "SSL", "ssl_cafile": str(secured.file("ca.pem")),
            "ssl_certfile": str(secured.file(f"{user}.pem")), "ssl_keyfile": str(secured.file(f"{user}.key")),
        },
        changes,
    )  # fmt: skip


def _section(usual: Section, changes: Mapping[str, Any]) -> Section:
    return {key: value for key, value in {**usual, **changes}.items() if value is not None}


class Guarded(Deployment):
    """A deployment whose worker has the documented rights, and may lose some."""

    kafka: SecuredCluster

    @property
    def acls(self) -> dict[str, Acl]:
        return documented(self.app, self.topic())

    def settings(self, section: Section | None = None) -> KafkaSettings:
        """How a worker connects, or whose section that is."""
        config = load_config(self.config)
        if section is not None:
            kafka = type(config.kafka).model_validate(section | {"app": self.app})
            config = config.model_copy(update={"kafka": kafka})
        return settings_of(config)

    def send(self, first: int, last: int) -> None:
        """Events, as whoever may write them."""
        people = [f"p{number}".encode() for number in range(first, last)]
        records = [
            Record(who, orjson.dumps({"who": who.decode(), "at": 1_000_000_000 + first * 3_600, "x": 7}))
            for who in people
        ]
        self.kafka.produce(self.topic(), records)
