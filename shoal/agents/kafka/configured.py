"""The Kafka layer's settings, as a configuration has them."""

from pathlib import Path

from shoal.agents.kafka.settings import KafkaSettings
from shoal.models.config.file import Config
from shoal.models.errors import ConfigError


def needed_settings(config: Config, path: Path, *, instance: str | None = None) -> KafkaSettings:
    """The settings, for a command that can do nothing without brokers.

    Raises:
        ConfigError: the configuration names none.
    """
    if not config.has_kafka:
        raise ConfigError(
            f"{path}: no [kafka] section, which this command needs; add one with brokers and app, or set "
            "SHOAL_KAFKA_BROKERS"
        )
    return settings_of(config, instance=instance)


def settings_of(config: Config, *, instance: str | None = None) -> KafkaSettings:
    """The Kafka layer's settings, TLS and SASL passed through.

    Raises:
        ConfigError: a secret's file cannot be read.
    """
    kafka = config.kafka
    client: dict[str, object] = {}
    if kafka.security_protocol != "PLAINTEXT":
        client["security_protocol"] = kafka.security_protocol
    if kafka.security_protocol.startswith("SASL"):
        client |= {"sasl_mechanism": kafka.sasl_mechanism, "sasl_plain_username": kafka.sasl_username}
        client["sasl_plain_password"] = _password(config)
    if kafka.security_protocol.endswith("SSL"):
        client["ssl_context"] = _ssl_context(config)
    return KafkaSettings(
        brokers=kafka.brokers,
        app=kafka.app,
        instance=instance,
        client=client,
        ca_file=None if kafka.ssl_cafile is None else str(kafka.ssl_cafile),
        partitions=kafka.partitions,
        replication=kafka.replication,
        idle_after=kafka.idle_after / 1e6,
    )


def _password(config: Config) -> str:
    path = config.kafka.sasl_password_file
    if path is None:
        raise ConfigError("[kafka]: sasl_password_file is missing; name the file that holds the password")
    try:
        return path.read_text("utf-8").rstrip("\n")
    except OSError as error:
        raise ConfigError(f"[kafka] sasl_password_file {path}: cannot be read ({error.strerror})") from None


def _ssl_context(config: Config) -> object:
    from aiokafka.helpers import create_ssl_context

    kafka = config.kafka
    files = {"cafile": kafka.ssl_cafile, "certfile": kafka.ssl_certfile, "keyfile": kafka.ssl_keyfile}
    try:
        return create_ssl_context(**{name: str(path) for name, path in files.items() if path is not None})
    except OSError as error:
        raise ConfigError(f"[kafka]: the TLS files cannot be used ({error.strerror or error})") from None
