"""Kept runs in another place: copied with the data and models that they are of, as if they had been made there."""

import hashlib
import json
import os
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from .make import INPUTS, NIGHT

RUNS = Path(__file__).parent / "runs"
KEY = b"leafledger"  # of a part's footer


def list_kept() -> list[str]:
    """List the kept runs, as "0.1.0/plain"."""
    return sorted(str(path.parent.relative_to(RUNS)) for path in RUNS.glob("*/*/manifest.json"))


def copy_run(name: str, folder: Path) -> Path:
    """Copy a run to where it may be written to."""
    return Path(shutil.copytree(RUNS / name, folder / name))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_json(path: Path) -> Any:
    """The JSON of a file, or of a part's footer."""
    return json.loads(pq.read_metadata(path).metadata[KEY] if path.suffix == ".parquet" else path.read_text())


def write_json(path: Path, value: Any) -> None:
    """Write a record as leafledger does, or a part anew with another footer."""
    if path.suffix != ".parquet":
        path.write_text(json.dumps(value, indent=1, sort_keys=path.name == "plan.json"))
        return
    table = pq.read_table(path)
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({KEY.decode(): json.dumps(value)})


def name_plan(plan: Path) -> dict[str, str]:
    """What footers of a plan's parts name: 0.1 the plan itself, later versions all of it but its rows and places."""
    text = read_json(plan)
    if str(text.get("version")).startswith("0.1."):
        return {"plan": _sha256(plan)}
    made = json.dumps({**text, "model": "", "data": "", "items": [], "rejected": []}, indent=1, sort_keys=True)
    return {"recipe": hashlib.sha256(made.encode()).hexdigest()}


def seal_run(run: Path, plan: bool) -> None:
    """Let the manifest say of the parts what is true of them; and manifest and parts name the plan as it is now."""
    manifest = read_json(run / "manifest.json")
    home = run / manifest.get("place", "")
    if plan:
        manifest["plan"] = _sha256(home / "plan.json")
    for entry in manifest["parts"]:
        path = run / entry["uri"]
        if plan:
            write_json(path, read_json(path) | name_plan(home / "plan.json"))
        entry |= {"size": path.stat().st_size, "sha256": _sha256(path)}
    write_json(run / "manifest.json", manifest)


def move_run(name: str, folder: Path) -> Path:
    """Copy a run with its inputs, whose times are as they were, and let all of its records say where they are now."""
    night, run = Path(shutil.copytree(INPUTS, folder / "night")), copy_run(name, folder / "runs")
    home = run / read_json(run / "manifest.json").get("place", "")
    for item in read_json(home / "plan.json")["items"]:
        path = night / Path(item["uri"]).relative_to(NIGHT)
        time = int(Decimal(item["etag"].split(" ")[0].partition("-")[2]) * 10**9)
        os.utime(path, ns=(time, time))
    for path in run.rglob("*.json"):
        path.write_text(path.read_text().replace(str(NIGHT), str(night)))
    for path in run.rglob("part-*.parquet"):
        write_json(path, json.loads(json.dumps(read_json(path)).replace(str(NIGHT), str(night))))
    for other in ("provenance.json", "after.json"):  # of the manifest that was
        (home / other).unlink(missing_ok=True)
    if (home / "inputs.json").exists():
        write_json(home / "inputs.json", read_json(home / "inputs.json") | {"plan": _sha256(home / "plan.json")})
    if home != run:  # a place is named by its plan
        place = f"replacements/{_sha256(home / 'plan.json')[:16]}"
        manifest = (run / "manifest.json").read_text().replace(str(home.relative_to(run)), place)
        (run / "manifest.json").write_text(manifest)
        home.rename(run / place)
    seal_run(run, plan=True)
    return run
