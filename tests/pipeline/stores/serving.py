"""A folder at a web server, as pages of links."""

import threading
from contextlib import contextmanager

import flask
from werkzeug.serving import make_server


@contextmanager
def served(folder, send=flask.send_file, beside=(), refused=None):
    """A folder at a web server, which shows folders as pages of links, the first of them another order of the page; files are sent as asked.

    ``beside`` are links that each page has beside these; ``refused`` are paths with the status that they are answered with.
    """
    pages = flask.Flask("pages")

    def show(path=""):
        place = folder / path
        if path.rstrip("/") in (refused or {}):
            flask.abort(refused[path.rstrip("/")])
        if place.is_dir():
            below = [f"{each.name}{'/' * each.is_dir()}" for each in place.iterdir()]
            return "\n".join(f'<a href="{name}">{name}</a>' for name in ("?C=S;O=A", *beside, *below))
        return send(place) if place.exists() else flask.abort(404)

    pages.add_url_rule("/", view_func=show)
    pages.add_url_rule("/<path:path>", view_func=show)
    server = make_server("127.0.0.1", 0, pages, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
