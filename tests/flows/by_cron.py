"""The nights of the week on a machine with cron, and what comes of them afterwards: one is put back, a person is forgotten, Leafledger upgraded."""

from tests.earlier.make import INPUTS
from tests.earlier.moving import RUNS

NIGHTS = """[explain]
model = "s3://models/arrival-delay.json"
data = "s3://flights/date={date}"
out = "s3://bycron/{date}"
latest = "s3://bycron/latest.json"
against = "s3://bycron/latest.json"
id = ["flight"]
values = true
scheduler = "serial"
metrics-file = "nights.prom"
"""  # of a machine with cron


def live_by_cron(week):
    """The same nights on a machine with cron, and what came of them afterwards."""
    week.write("nights.toml", NIGHTS)
    explain, log = "leafledger explain --config nights.toml", "2> night.log"
    week.type(f"{explain} --dates 2026-03-22..2026-03-28 {log}", "echo $?")
    week.type(f"{explain} --dates 2026-03-23..2026-03-29 {log}", "echo $?", "grep '^leafledger:' night.log")
    week.type("grep '^leafledger_run_finished' nights.prom")
    drift = "leafledger drift 's3://bycron/{date}' --against 's3://bycron/{date-1d}' --date 2026-03-28 --metrics-file nights.prom"
    week.type(f"{drift} | tail -n 5", "grep '^leafledger_drift' nights.prom")
    week.type("leafledger check 's3://bycron/{date}'", "echo $?", "leafledger check 's3://bycron/{date}' --date 2026-03-28")

    week.bring_model(1, "s3://models/trial.json")
    last, shown = "s3://bycron/2026-03-28", "--where flight=1117 --top 1 | tail -n 1"
    week.keep("explained", last)
    week.type(
        f"{explain} s3://models/trial.json --date 2026-03-28 --replace --keep-replaced --quiet {log}",
        f"{explain} --dates 2026-03-24..2026-03-30 {log} | grep ^2026-03-28",
        f"leafledger show {last} {shown}",
        f"leafledger rollback {last}",
        f"leafledger check {last} | grep sound",
        f"leafledger show {last} {shown}",
    )
    week.keep("put back", last)

    brought = dict(week.brought)
    for day, frames in brought.items():
        week.bring(day, *(frame[frame["flight"] != 1117] for frame in frames))
    forget, again = "leafledger forget s3://bycron --where flight=1117", f"{explain} --dates 2026-03-22..2026-03-28"
    week.type(
        f"leafledger show s3://bycron {shown}",
        f"{forget} --dry-run | grep hold",
        f"{forget} | tail -n 2",
        f"{again} {log} | tail -n 1",
        f"{again} --if-changed keep {log} | tail -n 1",
    )
    week.keep("forgotten", last)
    for day, frames in brought.items():  # of which the nights in the other bucket are
        week.bring(day, *frames)

    week.objects.put_file(str(INPUTS / "model.txt"), "s3://models/orders.txt")
    for part in range(2):
        week.objects.put_file(str(INPUTS / "data" / f"part={part}" / "rows.parquet"), f"s3://orders/date=2026-03-29/{part}.parquet")
    before, orders = "s3://bycron/orders/2026-03-28", "s3://bycron/orders/{date}"
    week.objects.put(f"{RUNS}/0.2.0/next/", f"{before}/", recursive=True)
    given = f"s3://models/orders.txt 's3://orders/date={{date}}' --out '{orders}' --against '{orders.replace('date', 'date-1d')}'"
    week.type(
        f"leafledger explain {given} \\\n    --date 2026-03-29 --id id --values --scheduler serial --quiet",
        "leafledger runs s3://bycron/orders | grep 2026",
        f"leafledger check {before} | grep sound",
        f"leafledger check {before} --deep --quiet",
        "echo $?",
    )
