"""Locks of open files that the system gives back with the descriptor, whatever ends its process."""

import sys

if sys.platform == "win32":
    import msvcrt

    def try_lock(file: int) -> bool:
        """Lock a file that is open for writing, by its first byte, which need not be there; return whether nobody else holds it."""
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def try_lock(file: int) -> bool:
        """Lock a file that is open for writing; return whether nobody else holds it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
