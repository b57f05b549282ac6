"""Ways to interrupt a run at a chosen moment: a client gets a signal at a request, something happens after the first item, two race to the store."""

import signal
import threading

from tests.faults.proxy import Rule

WRITES = "^(PUT|POST|DELETE) "


def interrupt(start, proxy, when, pattern=WRITES, skip=0, number=signal.SIGKILL):
    """A client that gets a signal at a request, before the store has it or after; it has ended when this returns."""
    clients = []
    fault = when(lambda: clients[0].kill(number))
    fault.__name__ = f"client {signal.Signals(number).name} {when.__name__}"
    with proxy.broken(Rule(pattern, fault, skip=skip)):
        clients.append(start())
        clients[0].wait()
    return clients[0]


def struck(act):
    """A watcher that acts once the first item is explained."""

    def progress(work):
        acted = []

        def done(part):
            if not acted:
                acted.append(True)
                act()

        return done

    return progress


def meet(exchange, together):
    """Two at once race to the store: who finds nobody goes on alone after a while."""
    try:
        together.wait(0.5)
    except threading.BrokenBarrierError:
        together.reset()
    exchange.answer(exchange.forward())
