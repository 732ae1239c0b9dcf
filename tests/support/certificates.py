"""Certificates that brokers and clients show each other in tests."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from shoal.agents.broker.process import HOST

Pair = tuple[ec.EllipticCurvePrivateKey, x509.Certificate]


def save(folder: Path, name: str, pair: Pair) -> None:
    """Write NAME.key, NAME.pem, and both in NAME.both."""
    key = pair[0].private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    certificate = pair[1].public_bytes(serialization.Encoding.PEM)
    (folder / f"{name}.key").write_bytes(key)
    (folder / f"{name}.pem").write_bytes(certificate)
    (folder / f"{name}.both").write_bytes(key + certificate)


def certify(name: str, signer: Pair | None = None, days: int = 30) -> Pair:
    """A key and its certificate, valid for so many days from now; without a signer that of a CA."""
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
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(signer is None, None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if signer:
        builder = builder.add_extension(names, critical=False)
    return key, builder.sign(issuer_key, hashes.SHA256())
