"""What comes of a night afterwards, by Prefect: another model takes its place and is put back, and a person is forgotten in it."""

LATEST = "s3://again/latest.json"
ELSEWHERE = f"--param 'out=s3://again/{{date-1d}}' --param latest={LATEST} --param against={LATEST}"  # the week's nights stay as they were found


def live_afterwards(week, sunday):
    """The night of Sunday once more, in a bucket of its own."""
    again, run = f"prefect deployment run explain/nightly --param date={sunday} {ELSEWHERE}", "s3://again/2026-03-28"
    week.see("once more", week.start(again, sunday))
    week.keep("once more", run)

    week.bring_model(1)
    week.see("another model", week.start(f"{again} --param if_changed=replace --param keep_replaced=true", sunday))
    week.type(f"leafledger rollback {run}")
    week.bring_model(5)
    week.see("put back", week.start(again, sunday))
    week.keep("put back by hand", run)

    brought = week.brought[sunday]
    week.bring(sunday, *(frame[frame["flight"] != 1117] for frame in brought))
    week.type("leafledger forget s3://again --where flight=1117 | tail -n 2")
    week.see("forgotten", week.start(again, sunday))
    week.see("left as it is", week.start(f"{again} --param if_changed=keep", sunday))
    week.keep("forgotten by hand", run)
    week.bring(sunday, *brought)
