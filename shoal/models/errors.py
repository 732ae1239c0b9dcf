"""Errors that speak to the person who can correct them: what, where, what to do.

    ShoalError            exit 1
    |-- ConfigError       the configuration file says something impossible
    |-- KeyFileError      the secret key: missing, readable by others, wrong, already bound to another log
    |-- LedgerError       what was agreed and what is asked for differ: budget, parameters, schema, partition counts
    |-- KafkaError        topics or brokers are not what they must be
    |-- InputError        an input file cannot be read at all
    |-- AuditError        the audit found a fault
    |-- MissingExtra      what was asked for needs packages that are not installed
    `-- FailStop          the stream must not go on; the supervisor restarts the worker

No message holds a value, a user id or a byte of the key.
"""

from shoal.models.printable import printable


class ShoalError(Exception):
    """Base of all errors that a user can correct; the message is one line, without control characters of names."""

    exit_code = 1

    def __str__(self) -> str:
        return printable(super().__str__())


class ConfigError(ShoalError):
    """The configuration is refused."""


class KeyFileError(ShoalError):
    """The secret key cannot be used."""


class MissingKey(KeyFileError):
    """There is no key file of this name."""


class LedgerError(ShoalError):
    """The ledger refuses: budget, parameters, schema or partition counts."""


class KafkaError(ShoalError):
    """A broker or topic is missing or is not what it must be."""


class InputError(ShoalError):
    """An input file cannot be read."""


class AuditError(ShoalError):
    """The audit found a release that is not what it must be."""


class MissingExtra(ShoalError):
    """An extra of the package is not installed."""


class FailStop(ShoalError):
    """Going on could lose, repeat or change a release; the worker ends instead."""
