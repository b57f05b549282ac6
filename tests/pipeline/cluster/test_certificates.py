"""Certificates: whom they let in, whom they keep out, and what is said when their time is over."""

import os
import ssl
import stat
import subprocess
import sys
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import dask
import pytest
from cryptography import x509

from leafledger.pipeline.cluster import certificates
from leafledger.pipeline.cluster.certificates import ROLES, check_expiry, make_certificates
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import LeafledgerError, RunConflict, UnfitCluster, UsageError


def shake(folder, role, other, trusted):
    """A handshake of a server with the certificate of ``role`` and a client with that of ``other``, each of which trusts an authority."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context, mine, where in ((server, role, folder), (client, other, trusted)):
        context.load_cert_chain(where / f"{mine}.pem", where / f"{mine}-key.pem")
        context.load_verify_locations(where / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    ends = [ssl.MemoryBIO() for _ in range(4)]
    there, here = server.wrap_bio(ends[0], ends[1], server_side=True), client.wrap_bio(ends[2], ends[3], server_hostname="localhost")
    done = set()
    while len(done) < 2:
        for k, end in enumerate((here, there)):
            try:
                end.do_handshake()
                done.add(k)
            except ssl.SSLWantReadError:
                pass
        ends[0].write(ends[3].read())
        ends[2].write(ends[1].read())
    there.write(b"heard")
    ends[2].write(ends[1].read())
    return here.read()


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("other", ROLES)
def test_certificates_of_one_call_trust_each_other(tmp_path, role, other):
    """OpenSSL takes them, by their names too; those of another call are refused."""
    made = make_certificates(tmp_path / "one", days=2)
    assert shake(tmp_path / "one", role, other, tmp_path / "one") == b"heard"
    make_certificates(tmp_path / "two")
    with pytest.raises(ssl.SSLError, match="certificate verify failed"):
        shake(tmp_path / "one", role, other, tmp_path / "two")
    assert made.expires - datetime.now(UTC) < timedelta(days=2)


def test_keys_are_their_owners_alone(tmp_path):
    """And nobody can sign another one: the authority's key is in no file."""
    made = make_certificates(tmp_path / "tls", ["scheduler.example.com", "10.0.0.1"])
    assert sorted(made.files) == sorted(os.listdir(tmp_path / "tls"))
    assert {name for name in made.files if stat.S_IMODE((tmp_path / "tls" / name).stat().st_mode) == 0o600} == {f"{role}-key.pem" for role in ROLES}
    authority = x509.load_pem_x509_certificate((tmp_path / "tls/ca.pem").read_bytes())
    for role in ROLES:
        named = x509.load_pem_x509_certificate((tmp_path / f"tls/{role}.pem").read_bytes())
        key = named.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert [str(each.value) for each in key] == ["scheduler.example.com", "10.0.0.1"]
        named.verify_directly_issued_by(authority)
        assert named.public_key() != authority.public_key()


def test_an_authority_signs_the_three_certificates_and_nothing_else(tmp_path):
    """Neither texts nor keys, nor another authority; those that it signs sign nothing. Who does not know what that means has to refuse them."""
    make_certificates(tmp_path)

    def found(name, kind):
        extension = x509.load_pem_x509_certificate((tmp_path / f"{name}.pem").read_bytes()).extensions.get_extension_for_class(kind)
        assert extension.critical
        return extension.value

    used = found("ca", x509.KeyUsage)
    uses = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "key_cert_sign", "crl_sign")
    assert [use for use in uses if getattr(used, use)] == ["key_cert_sign"]
    assert found("ca", x509.BasicConstraints) == x509.BasicConstraints(ca=True, path_length=0)
    for role in ROLES:
        assert not found(role, x509.BasicConstraints).ca


def test_what_is_there_stays(tmp_path):
    """Half of it too: certificates of two calls do not fit together."""
    (tmp_path / "worker.pem").write_text("mine")
    with pytest.raises(RunConflict, match=r"worker\.pem: is there already"):
        make_certificates(tmp_path)
    assert os.listdir(tmp_path) == ["worker.pem"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"days": 0}, "days is 0, expected 1 to 3650"),
        ({"hosts": []}, "no host is given"),
        ({"hosts": ["größe"]}, "host 'größe': expected a name in ASCII or an address"),
        ({"hosts": ["a,b"]}, "host 'a,b': expected a name in ASCII or an address"),
        ({"hosts": ["scheduler:8786"]}, "host 'scheduler:8786': expected a name in ASCII or an address"),
        ({"hosts": ["10.0.0.0/8"]}, "host '10.0.0.0/8': expected a name in ASCII or an address"),
        ({"hosts": ["localhost", ""]}, "host '': expected a name in ASCII or an address"),
        ({"hosts": ["a." * 126 + "bc"]}, "host 'a.a.a"),
    ],
)
def test_what_cannot_be_certified_is_refused(tmp_path, arguments, said):
    with pytest.raises(UsageError, match=said):
        make_certificates(tmp_path / "tls", **arguments)
    assert not (tmp_path / "tls").exists()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="file: cannot be written: "):
        make_certificates(tmp_path / "file")


@pytest.fixture
def shifted(monkeypatch):
    """Certificates are made as of another day."""

    def shift(days):
        class Then(datetime):
            @classmethod
            def now(cls, tz=None):
                return datetime.now(tz) + timedelta(days=days)

        monkeypatch.setattr(certificates, "datetime", Then)

    return shift


@pytest.mark.parametrize(("days", "said"), [(-10, r"expired on \d{4}-\d\d-\d\d \d\d:\d\d UTC"), (10, "is valid from .* is the clock right")])
def test_certificates_of_another_time_are_named(tmp_path, shifted, monkeypatch, days, said):
    shifted(days)
    make_certificates(tmp_path, days=5)
    monkeypatch.undo()
    with pytest.raises(UnfitCluster, match=said):
        check_expiry(tmp_path / "client.pem")


def test_what_is_no_certificate_is_left_to_dask(tmp_path):
    make_certificates(tmp_path)
    for name in ("client.pem", "client-key.pem", "nowhere.pem"):
        check_expiry(tmp_path / name)


@pytest.fixture
def explained(example, capsys):
    """Exit code and standard error of a run on a cluster, where Dask is configured by a file, as ``DASK_CONFIG`` names one."""

    def explain(out, address, configuration):
        dask.config.refresh(paths=[str(configuration)])
        capsys.readouterr()
        code = main(["explain", example.model, example.data, "--out", str(out), "--scheduler", address, "--quiet"])
        return code, capsys.readouterr().err

    yield explain
    dask.config.refresh()


@pytest.mark.slow
def test_a_run_on_a_cluster_with_these_certificates(explained, tmp_path, shifted, monkeypatch):
    """``dask scheduler``, ``dask worker`` and the command read ``dask.yaml``; a client of another call is kept out, an expired one says so."""
    make_certificates(tmp_path / "tls")
    make_certificates(tmp_path / "other")
    shifted(-10)
    make_certificates(tmp_path / "old", days=5)
    monkeypatch.undo()
    environment = os.environ | {"DASK_CONFIG": str(tmp_path / "tls/dask.yaml")}
    program, file = Path(sys.executable).with_name("dask"), tmp_path / "scheduler.json"
    told = (
        ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file),
        ("worker", "--scheduler-file", file, "--nthreads", "1", "--no-dashboard", "--local-directory", tmp_path),
    )
    start = partial(subprocess.Popen, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    processes = []
    try:
        processes.extend(start([str(program), *map(str, each)]) for each in told)
        for line in processes[1].stderr:
            if "Registered to" in line:
                break
        address = line.split()[-1]
        assert address.startswith("tls://127.0.0.1:")
        assert explained(tmp_path / "run", address, tmp_path / "tls/dask.yaml") == (0, "")
        code, said = explained(tmp_path / "late", address, tmp_path / "old/dask.yaml")
        assert (code, said.count("\n")) == (10, 1)
        assert "old/client.pem: this certificate expired on" in said
        code, said = explained(tmp_path / "stranger", address, tmp_path / "other/dask.yaml")
        assert (code, said.count("\n")) == (9, 1)
        assert "no Dask scheduler answers there" in said
    finally:
        for process in reversed(processes):
            process.terminate()
            process.communicate()


def test_a_certificate_s_first_and_last_moments_are_its_own(tmp_path, monkeypatch):
    """RFC 5280, 4.1.2.5: it is valid "from notBefore through notAfter, inclusive", whole seconds; a moment beyond, it is not."""
    made = make_certificates(tmp_path, days=5)
    certificate = x509.load_pem_x509_certificate((tmp_path / "client.pem").read_bytes())
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    assert made.expires == last
    moment = timedelta(microseconds=1)
    for now, said in ((first, None), (last, None), (first - moment, "is valid from"), (last + moment, "expired on")):
        monkeypatch.setattr(certificates, "datetime", SimpleNamespace(now=lambda tz, now=now: now))
        with nullcontext() if said is None else pytest.raises(UnfitCluster, match=said):
            check_expiry(tmp_path / "client.pem")


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("", "folder is '', expected a path or URI"),
        ("s3://bucket/tls", "expected a folder of this machine"),
        ("a\0b", "cannot"),
        (3, "folder is 3, expected"),
    ],
)
def test_a_folder_that_is_none_of_this_machine_is_refused(tmp_path, monkeypatch, folder, said):
    """An empty one, as of a variable that is not set, was the working directory; a URI a folder below it."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LeafledgerError, match=said):
        make_certificates(folder)
    assert not list(tmp_path.iterdir())
