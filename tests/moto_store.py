"""A store that speaks S3: moto, whose connections stay open, as those of real stores do; and clients of it that outlast a test."""

import functools
import io
import sys
import threading
from contextlib import contextmanager

import s3fs
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.test import run_wsgi_app

BODILESS = ("1", "204", "304")  # statuses whose answers have no body, and no length
_CLIENTS = {}  # by the store's URL, those that tests made of it


class _Application(DomainDispatcherApplication):
    """Moto's, which goes through the folders of all its services for each request to find the same one."""

    @functools.cache  # noqa: B019 - it lives as long as the process
    def get_backend_for_host(self, host):
        return super().get_backend_for_host(host)


class _Handler(WSGIRequestHandler):
    """Werkzeug's, which closes a connection after each request, and logs it; an answer goes out in one piece."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def run_wsgi(self):
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        environ = self.make_environ()
        chunked = environ.get("wsgi.input_terminated", False)
        body = environ["wsgi.input"].read() if chunked else self.rfile.read(int(environ.get("CONTENT_LENGTH") or 0))
        found, status, headers = run_wsgi_app(self.server.app, environ | {"wsgi.input": io.BytesIO(body)}, buffered=True)
        data = b"".join(found)
        if "Content-Length" not in headers and not status.startswith(BODILESS):
            headers["Content-Length"] = str(len(data))
        head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers), ""))
        self.wfile.write(head.encode("latin-1") + (b"" if self.command == "HEAD" else data))


def _make_app(service):
    """Moto's of a service, without Flask's help for whoever writes one, which makes a class for each request."""
    app = create_backend_app(service)
    app.debug = False
    return app


@contextmanager
def run_moto():
    """A moto server on a free port of the loopback address; its URL."""
    server = make_server("127.0.0.1", 0, _Application(_make_app), threaded=True, request_handler=_Handler)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        server.server_close()
        serving.join()


@contextmanager
def kept_clients(url):
    """Clients that others made of this store before, who had the same credentials, as if they were new: one takes a fifth of a second to make."""
    made = s3fs.S3FileSystem._cache
    made.clear()
    made.update(_CLIENTS.get(url, {}))
    for client in made.values():
        client.invalidate_cache()
    try:
        yield
    finally:
        _CLIENTS[url] = {**made}
        made.clear()


if __name__ == "__main__":  # in a process of its own, which says its URL and ends with its standard input
    with run_moto() as url:
        print(url, flush=True)
        sys.stdin.read()
