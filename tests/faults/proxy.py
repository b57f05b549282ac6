"""A small HTTP proxy in front of an S3 endpoint that breaks what it is told to break, and counts it.

Headers go on unchanged, the Host among them, so that a signature made for the proxy's address holds: a store that verifies signatures verifies
what was signed, whatever the address it was sent to.
"""

import contextlib
import http.client
import random
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}
ERROR = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>made by the test</Message></Error>"


class Dropped(Exception):
    """The connection is gone, nothing more is to be said on it."""


@dataclass(frozen=True)
class Answer:
    """What a server said."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes


class Exchange:
    """One request on its way: its body is read, it is forwarded and answered when a fault, or no fault, does so."""

    def __init__(self, handler: "_Handler"):
        self._handler = handler
        self._body: bytes | None = None
        self.headers = list(handler.headers.items())

    @property
    def body(self) -> bytes:
        """All of the request's body."""
        if self._body is None:
            self._body = self._read_chunks() if "chunked" in self._handler.headers.get("Transfer-Encoding", "") else self.read_some(1.0)
        return self._body

    def _read_chunks(self) -> bytes:
        chunks = []
        while size := int(self._handler.rfile.readline().split(b";")[0], 16):
            chunks.append(self._handler.rfile.read(size))
            self._handler.rfile.readline()
        while self._handler.rfile.readline().strip():
            pass
        return b"".join(chunks)

    def read_some(self, share: float) -> bytes:
        """That share of a request's body that has a length."""
        if self._handler.headers.get("Expect", "").lower() == "100-continue":
            self._handler.send_response_only(100)
            self._handler.end_headers()
        size = int(share * int(self._handler.headers.get("Content-Length", 0)))
        found = self._handler.rfile.read(size)
        if len(found) < size:  # who sent it is dead; no store takes a part for the whole
            raise Dropped
        return found

    def forward(self) -> Answer:
        """Send the request on; what the store said."""
        connection = self._handler.store
        connection.putrequest(self._handler.command, self._handler.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers:
            if name.lower() not in BY_HOP:
                connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(self.body)))
        connection.endheaders(self.body)
        found = connection.getresponse()
        return Answer(found.status, found.reason, found.getheaders(), found.read())

    def answer(self, answer: Answer, body: bytes | None = None, pause: float = 0.0) -> None:
        """Say it, the body cut to ``body`` where that is given, in pieces with pauses between where there is a pause."""
        handler = self._handler
        handler.send_response_only(answer.status, answer.reason)
        for name, value in answer.headers:
            if name.lower() not in BY_HOP or (handler.command == "HEAD" and name.lower() == "content-length"):
                handler.send_header(name, value)
        if handler.command != "HEAD":
            handler.send_header("Content-Length", str(len(answer.body)))
        handler.end_headers()
        told = b"" if handler.command == "HEAD" else answer.body if body is None else body
        step = max(1, len(told) // 8) if pause else max(1, len(told))
        for start in range(0, len(told), step):
            time.sleep(pause)
            handler.wfile.write(told[start : start + step])
            handler.wfile.flush()

    def reset(self) -> None:
        """Cut the connection so that the other side sees a reset."""
        self._handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Dropped

    def wait(self, seconds: float) -> None:
        """Until the proxy has no rules any more, at most so long."""
        self._handler.server.calm.wait(seconds)


Fault = Callable[[Exchange], None]


def says(status: int, code: str) -> Fault:
    """Answer with an error, as a store would."""

    def fault(exchange: Exchange) -> None:
        _ = exchange.body
        exchange.answer(Answer(status, code, [("Content-Type", "application/xml")], ERROR.format(code=code).encode()))

    fault.__name__ = f"{status} {code}"
    return fault


def reset(exchange: Exchange) -> None:
    """Cut the connection in the middle of the request."""
    exchange.read_some(0.5)
    exchange.reset()


def hang(exchange: Exchange) -> None:
    """Never answer."""
    exchange.wait(600)
    exchange.reset()


def slow(exchange: Exchange) -> None:
    """Answer in pieces."""
    exchange.answer(exchange.forward(), pause=0.1)


def lose_answer(exchange: Exchange) -> None:
    """Let the store do it, and say that it failed."""
    exchange.forward()
    says(500, "InternalError")(exchange)


def drop_answer(exchange: Exchange) -> None:
    """Let the store do it, and cut the connection."""
    exchange.forward()
    exchange.reset()


def truncate(exchange: Exchange) -> None:
    """Say half of the answer's body and cut the connection."""
    answer = exchange.forward()
    exchange.answer(answer, answer.body[: len(answer.body) // 2])
    exchange.reset()


def flip(exchange: Exchange) -> None:
    """Another bit in the middle of the answer's body."""
    answer = exchange.forward()
    body = bytearray(answer.body)
    if body:
        body[len(body) // 2] ^= 0x10
    exchange.answer(answer, bytes(body))


def flip_unnoticed(exchange: Exchange) -> None:
    """The same from a store that says no checksums."""
    answer = exchange.forward()
    headers = [(name, value) for name, value in answer.headers if not name.lower().startswith("x-amz-checksum")]
    middle = len(answer.body) // 2
    damaged = bytes(byte ^ 0x10 if i == middle else byte for i, byte in enumerate(answer.body))
    exchange.answer(Answer(answer.status, answer.reason, headers, answer.body), damaged)


def ignores(condition: str) -> Fault:
    """A store that knows no such condition."""

    def fault(exchange: Exchange) -> None:
        exchange.headers = [(name, value) for name, value in exchange.headers if name.lower() != condition.lower()]
        exchange.answer(exchange.forward())

    fault.__name__ = f"ignores {condition}"
    return fault


def afterwards(act: Callable[[], None]) -> Fault:
    """Let the store do it, then act before anybody is told."""

    def fault(exchange: Exchange) -> None:
        answer = exchange.forward()
        act()
        exchange.answer(answer)

    return fault


def before(act: Callable[[], None]) -> Fault:
    """Act before the store is asked."""

    def fault(exchange: Exchange) -> None:
        act()
        exchange.answer(exchange.forward())

    return fault


@dataclass
class Rule:
    """Requests whose line ``METHOD /path?query`` matches get the fault: after the first ``skip`` of them the next ``times``, or that share of all, or
    one in ``every``, in turn.

    Only for ``seconds`` from the first of these on, and only those beyond ``rate`` a second.
    """

    pattern: str
    fault: Fault
    times: float = 1
    skip: int = 0
    share: float = 1.0
    every: int = 1
    seed: int = 0
    seconds: float = float("inf")
    rate: float = 0.0
    seen: int = field(default=0, init=False)
    made: int = field(default=0, init=False)

    def begin(self) -> None:
        """Nothing of what was counted before counts, so that a rule holds in front of every store alike."""
        self.seen, self.made, self._random, self._since, self._allowed = 0, 0, random.Random(self.seed), None, (0.0, self.rate)

    def _is_over(self, now: float) -> bool:
        self._since = now if self._since is None else self._since
        return now - self._since > self.seconds

    def _allows(self, now: float) -> bool:
        """Whether the store can do one more in this second."""
        last, left = self._allowed
        left = min(self.rate, left + (now - last) * self.rate)
        self._allowed = now, left - 1 if left >= 1 else left
        return left >= 1

    def takes(self, line: str) -> bool:
        """Whether this request is to be broken; counts it."""
        if not re.search(self.pattern, line):
            return False
        self.seen += 1
        if self.seen <= self.skip or self.made >= self.times or self.seen % self.every or self._random.random() >= self.share:
            return False
        if self._is_over(now := time.monotonic()) or self._allows(now):
            return False
        self.made += 1
        return True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer is written in two pieces
    server: "Proxy"

    def handle(self) -> None:
        self.store = http.client.HTTPConnection(*self.server.upstream, timeout=60)  # open as long as the client's own
        with contextlib.closing(self.store):
            super().handle()

    def handle_expect_100(self) -> bool:
        return True  # said when the body is read

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (Dropped, ConnectionError, TimeoutError, http.client.HTTPException):
            self.close_connection = True

    def _do(self) -> None:
        exchange, line = Exchange(self), f"{self.command} {self.path}"
        fault = self.server.fault_for(line)
        if fault is None:
            exchange.answer(exchange.forward())
        else:
            fault(exchange)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _do  # noqa: N815 - http.server's names

    def log_message(self, *_) -> None:
        pass


class Proxy(ThreadingHTTPServer):
    """Listens on a free port of the loopback address; ``injected`` counts faults by name, ``lines`` are all requests."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream: str):
        super().__init__(("127.0.0.1", 0), _Handler)
        host, _, port = upstream.removeprefix("http://").partition(":")
        self.upstream = (host, int(port))
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.rules: list[Rule] = []
        self.lines: list[str] = []
        self.injected: Counter[str] = Counter()
        self.calm = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def fault_for(self, line: str) -> Fault | None:
        """The first rule's fault that takes the request."""
        with self._lock:
            self.lines.append(line)
            for rule in self.rules:
                if rule.takes(line):
                    self.injected[rule.fault.__name__.replace("_", " ")] += 1
                    return rule.fault
        return None

    @contextlib.contextmanager
    def broken(self, *rules: Rule) -> Iterator[None]:
        """These rules hold inside, none outside; whoever hangs is let go at the end."""
        self.calm.clear()
        with self._lock:
            for rule in rules:
                rule.begin()
            self.rules, self.lines = list(rules), []
        try:
            yield
        finally:
            with self._lock:
                self.rules = []
            self.calm.set()

    def handle_error(self, request, client_address) -> None:
        pass
