"""Whoever is told of nights: a web server that takes what ``infra/automations.yaml`` sends, once its block is one that sends there."""

import json
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import yaml

from tests.flows.conftest import call_prefect, wait_for

AGAIN_SECONDS, TRIES = 60, 5
TOLD_SECONDS = 1200  # until a notification comes: Prefect holds back for 15 minutes what overtakes the event before it, as beside other work
SETTLED = 8.0  # seconds; a server from which automations are deleted in the moment in which they are made is deaf to the next ones
FILE = Path(__file__).parents[2] / "infra" / "automations.yaml"


@contextmanager
def receive():
    """A web server on the loopback address, and what was sent to it."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    received = []
    with HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        threading.Thread(target=receiver.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{receiver.server_port}", received
        finally:
            receiver.shutdown()


@contextmanager
def automated(client, folder, change=lambda written: None):
    """The automations of the file on the server, after ``change`` of what the file says; both by name."""
    written = yaml.safe_load(FILE.read_text())
    change({each["name"]: each for each in written["automations"]})
    (folder / "automations.yaml").write_text(yaml.safe_dump(written))
    call_prefect(f"prefect automation create --from-file {folder / 'automations.yaml'}")
    found = client.request("POST", "/automations/filter").json()
    time.sleep(SETTLED)
    try:
        yield {each["name"]: each for each in found}
    finally:
        for each in found:
            client.request("DELETE", "/automations/{id}", path_params={"id": each["id"]})


def tell(url):
    """A change of the file's automations: their block is one that sends to ``url``."""
    from prefect.blocks.notifications import CustomWebhookNotificationBlock

    fields = {"subject": "{{subject}}", "body": "{{body}}"}
    block = CustomWebhookNotificationBlock(name="told", url=url, json_data=fields).save("told", overwrite=True)

    def change(written):
        for name in ("leafledger-nights", "leafledger-late"):
            (action,) = written[name]["actions"]
            action["block_document_id"] = str(block)

    return change


def wait_or_repeat(found, again):
    """The first true value of ``found()``. Where it did not come in AGAIN_SECONDS, ``again()`` is done, TRIES times: on SQLite Prefect's server drops
    an event that it failed to write down four times in a row, as beside other work."""
    for _ in range(TRIES):
        with suppress(TimeoutError):
            return wait_for(found, AGAIN_SECONDS)
        again()
    return wait_for(found, TOLD_SECONDS)
