"""What ends a process before or after any of its writes, so that a test can go through all of them."""

from leafledger.pipeline.stores import commit

WRITES = ("create", "copy", "update", "remove")
NEVER = 10**6


class KilledError(BaseException):
    """No error handler stops it, as none stops SIGKILL."""


def kill_writes(monkeypatch, *names):
    """``(left, steps)``: after how many moments, two to a write of these names, what runs is killed; and at which writes it was."""
    left, steps = [NEVER], []

    def die(name):
        if not left[0]:
            steps.append(name)
            raise KilledError
        left[0] -= 1

    def killing(name, function):
        def step(*given, **named):
            die(name)
            found = function(*given, **named)
            die(name)
            return found

        return step

    for name in names or WRITES:
        monkeypatch.setattr(commit, name, killing(name, getattr(commit, name)))
    return left, steps
