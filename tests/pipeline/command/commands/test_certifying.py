"""The command that makes certificates: what it says, and that it takes nobody's place."""

import json

from leafledger.pipeline.command import cli


def test_certificates_are_named(tmp_path, capsys):
    """As lines, and as a document; a second time is refused in one line."""
    assert cli.main(["certificates", str(tmp_path / "tls"), "--host", "scheduler", "10.0.0.1", "--days", "90"]) == 0
    files, until = capsys.readouterr().out.splitlines()
    assert files.startswith(f"{tmp_path / 'tls'}: ca.pem, scheduler.pem, scheduler-key.pem")
    assert until.endswith(", for scheduler, 10.0.0.1")
    assert cli.main(["certificates", str(tmp_path / "tls")]) == 7
    said = "is there already; certificates are made together, choose a folder without them"
    assert capsys.readouterr().err == f"leafledger: {tmp_path / 'tls/ca.pem'}: {said}\n"
    assert cli.main(["certificates", str(tmp_path / "more"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hosts"] == ["localhost", "127.0.0.1"]
