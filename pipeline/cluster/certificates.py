"""TLS certificates of a Dask scheduler, its workers and clients, signed by an authority whose key is discarded."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ..arguments.readers import read_place
from ..errors import RunConflict, UnfitCluster, UsageError
from ..stores.uris import require_local

ROLES = ("scheduler", "worker", "client")
AUTHORITY = "ca.pem"
CONFIGURATION = "dask.yaml"
MOST_DAYS = 3650
LONGEST = 253  # characters of a host name
_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
HOST = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")  # the first label may be a wildcard
SKEW = timedelta(hours=1)  # allowed clock skew between machines


@dataclass(frozen=True, slots=True)
class Certificates:
    """Certificates that were made."""

    folder: str
    hosts: tuple[str, ...]  # names and addresses that the certificates are valid for
    expires: datetime  # in UTC
    files: tuple[str, ...]  # names in the folder


def _name(role: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Leafledger"), x509.NameAttribute(NameOID.COMMON_NAME, f"leafledger {role}")])


def _read_host(host: str) -> x509.GeneralName:
    with suppress(ValueError):
        return x509.IPAddress(ip_address(host))
    if len(host) > LONGEST or not HOST.fullmatch(host):
        raise UsageError(f"host {host!r:.80}: expected a name in ASCII or an address")
    return x509.DNSName(host)


def _start(role: str, issuer: str, key: ec.EllipticCurvePublicKey, until: datetime) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(_name(role)).issuer_name(_name(issuer)).public_key(key)
    return builder.serial_number(x509.random_serial_number()).not_valid_before(datetime.now(UTC) - SKEW).not_valid_after(until)


def _make_authority(key: ec.EllipticCurvePrivateKey, until: datetime) -> x509.Certificate:
    signs = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        key_cert_sign=True, crl_sign=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = _start("authority", "authority", key.public_key(), until).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return builder.add_extension(signs, critical=True).add_extension(identifier, critical=False).sign(key, SHA256())


def _make_certificate(
    role: str, key: ec.EllipticCurvePrivateKey, authority: ec.EllipticCurvePrivateKey, hosts: Sequence[x509.GeneralName], until: datetime
) -> x509.Certificate:
    """Make a certificate for client and server use: workers both call and listen."""
    builder = _start(role, "authority", key.public_key(), until).add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    used = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    builder = builder.add_extension(used, critical=False).add_extension(by, critical=False)
    return builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False).sign(authority, SHA256())


def _configure(folder: Path) -> str:
    """Return Dask's configuration in YAML, which requires encryption with these files."""
    roles = {role: {"cert": f"{folder / role}.pem", "key": f"{folder / role}-key.pem"} for role in ROLES}
    return yaml.safe_dump({"distributed": {"comm": {"require-encryption": True, "tls": {"ca-file": str(folder / AUTHORITY)} | roles}}})


def make_certificates(folder: str | os.PathLike[str], hosts: Sequence[str] = ("localhost", "127.0.0.1"), days: int = 365) -> Certificates:
    """Make certificates and keys for a scheduler, its workers and its clients, of which each trusts those of the same call alone.

    Parameters
    ----------
    folder : str or path
        Where they are written, with ``dask.yaml``, which names them to Dask. None of the files may be there.
    hosts : sequence of str
        Names and addresses that they are made out to. Dask does not look at them.
    days : int
        Until they expire.

    Raises
    ------
    RunConflict
        The folder holds one of the files.
    UsageError
        A host is none, there are none, the days are none, or the folder cannot be written, or is none of this machine.
    """
    if not 1 <= days <= MOST_DAYS:
        raise UsageError(f"days is {days}, expected 1 to {MOST_DAYS}")
    named = [_read_host(host) for host in hosts]
    if not named:
        raise UsageError("no host is given, expected names or addresses")
    where = require_local("folder", read_place("folder", folder), "a folder of this machine, where keys stay")
    until = (datetime.now(UTC) + timedelta(days=days)).replace(microsecond=0)
    authority = ec.generate_private_key(ec.SECP256R1())
    files = {AUTHORITY: _make_authority(authority, until).public_bytes(Encoding.PEM)}
    for role in ROLES:
        key = ec.generate_private_key(ec.SECP256R1())
        files[f"{role}.pem"] = _make_certificate(role, key, authority, named, until).public_bytes(Encoding.PEM)
        files[f"{role}-key.pem"] = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    files[CONFIGURATION] = _configure(where).encode()
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in files:
            if (where / name).exists():
                raise RunConflict(f"{where / name}: is there already; certificates are made together, choose a folder without them")
        for name, content in files.items():
            with open(os.open(where / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if "key" in name else 0o644), "wb") as file:
                file.write(content)
    except OSError as error:
        raise UsageError(f"{error.filename or where}: cannot be written: {error.strerror}") from error
    return Certificates(str(where), tuple(hosts), until, tuple(files))


def check_expiry(path: str | os.PathLike[str]) -> None:
    """Refuse an expired or not yet valid certificate, for which Dask reports a timeout."""
    with suppress(OSError, ValueError):
        certificate, now = x509.load_pem_x509_certificate(Path(path).read_bytes()), datetime.now(UTC)
        first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if now > last:
            raise UnfitCluster(f"{path}: this certificate expired on {last:%Y-%m-%d %H:%M} UTC; `leafledger certificates` makes new ones")
        if now < first:
            raise UnfitCluster(f"{path}: this certificate is valid from {first:%Y-%m-%d %H:%M} UTC on; is the clock right?")
