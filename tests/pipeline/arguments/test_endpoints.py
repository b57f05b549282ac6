"""Addresses, files and servers that are told of a run are read before anything is asked of them."""

import os
from pathlib import Path

import pytest

from leafledger.pipeline.arguments.endpoints import can_lie, check_metrics_file, is_server, read_address
from leafledger.pipeline.errors import UsageError


def test_addresses_are_read():
    assert read_address("9464") == ("127.0.0.1", 9464)
    assert read_address("0.0.0.0:9464") == ("0.0.0.0", 9464)
    assert read_address("[::1]:0") == ("::1", 0)
    for wrong in ("", "x", "host:", "70000", "1.5", ":x", "-1"):
        with pytest.raises(UsageError, match=r"metrics_address is .*, expected a port, or HOST:PORT"):
            read_address(wrong)


def test_files_that_node_exporter_reads():
    """On this machine, by their ending, and one for every run."""
    check_metrics_file("/textfiles/nights.prom")
    wrong_names = (("nights.txt", "expected NAME.prom"), ("/textfiles/.prom", "expected NAME.prom"), ("memory://x.prom", "of this machine"))
    for wrong, says in (*wrong_names, ("{date}.prom", "expected the same file every night")):
        with pytest.raises(UsageError, match=says):
            check_metrics_file(wrong)


def test_paths_where_nothing_can_lie(tmp_path):
    """Without a folder, below a file, or of a name that is too long."""
    (tmp_path / "file").touch()
    assert [can_lie(tmp_path / name) for name in ("", "file", "new")] == [True] * 3
    assert [can_lie(tmp_path / name) for name in ("missing/new", "file/new", "a" * 300, f"{'a' * 300}/new")] == [False] * 4


def test_nothing_is_written_where_it_may_wait_for_ever(tmp_path):
    """Into a pipe that nobody reads, as it is or by a link; a link that leads nowhere is none."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "nowhere").symlink_to("missing")
    assert [can_lie(tmp_path / name) for name in ("pipe", "link", "nowhere")] == [False, False, True]
    assert not can_lie(Path("/dev/null"))


def test_servers_and_files_of_lineage():
    """A server by its URL, a file by its path; nothing is looked up for what is neither."""
    assert [is_server(where) for where in ("http://host:5000", "https://host/api/v1/lineage")] == [True, True]
    assert [is_server(where) for where in ("events.ndjson", "/var/events.ndjson", "file:///var/events.ndjson")] == [False] * 3
    for wrong, says in (
        ("http://", "expected a file"),
        ("http:/host", "expected a file"),
        ("ftp://host/x", "expected a file"),
        ("https://me:canary@host", r"\*\*\*@host: has credentials"),
        ("http://[::1", r"lineage is 'http://\[::1', expected a file, or .*; got: Invalid IPv6 URL$"),
        ("https://[host]/api", r"expected a file, or .*; got: 'host' does not appear to be an IPv4 or IPv6 address$"),
        ("http://host:port", r"expected a file, or .*; got: Port could not be cast to integer value as 'port'$"),
    ):
        with pytest.raises(UsageError, match=says):
            is_server(wrong)
