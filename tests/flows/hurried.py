"""What a test's worker starts for a flow run: Prefect's own engine, forked off a process that has imported everything, which saves seconds a run.

``serve PATH`` is that process, ``run PATH`` asks it. Waits between tries are as many as ever, and short.
"""

import json
import os
import runpy
import signal
import socket
import sys


def run(path):
    """A flow run with this process's environment, folder and output; its exit code."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(path)
        socket.send_fds(asked, [b"!"], [1, 2])
        asked.sendall(json.dumps([dict(os.environ), os.getcwd()]).encode())
        asked.shutdown(socket.SHUT_WR)
        return int(asked.makefile().read() or 1)  # nothing, where it was killed


def _make(asked):
    """The flow run, in the process that was forked off for it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, descriptors, _, _ = socket.recv_fds(asked, 1, 2)
    for descriptor, own in zip(descriptors, (1, 2), strict=True):
        os.dup2(descriptor, own)
    environment, folder = json.loads(asked.makefile().read())
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["prefect.engine"]
    code = 0
    try:
        runpy.run_module("prefect.engine", run_name="__main__")
    except SystemExit as ended:
        code = int(ended.code or 0)
    asked.sendall(str(code).encode())
    return code


def serve(path):
    """Fork off whoever is asked for."""
    import s3fs  # noqa: F401 - what runs import when they meet their store

    from leafledger.flows import stages

    stages.RETRY_SECONDS[:] = [0.1 for _ in stages.RETRY_SECONDS]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        while True:
            asked, _ = listening.accept()
            with asked:
                if os.fork() == 0:
                    return _make(asked)


if __name__ == "__main__":
    sys.exit({"run": run, "serve": serve}[sys.argv[1]](sys.argv[2]))
