"""Each kernel is compiled by one of pytest's processes, and the others wait for it: in a fresh clone all of them begin with the same kernels."""

from filelock import FileLock, Timeout
from numba.core.dispatcher import Dispatcher

from leafledger.kernels.jit.code_files import CompiledFiles

PATIENCE = 60  # seconds; then it is compiled here as well, as it would be without waiting


def compile_once():
    """Let this process compile what no other one is compiling."""
    load, save, compile_it = CompiledFiles.load, CompiledFiles.save, Dispatcher.compile
    compiling = {}

    def wait_and_load(files, key):
        found, path = load(files, key), files._index_path
        if found is not None or path in compiling:
            return found
        lock = FileLock(f"{path[:-1]}l")  # goes with the kernel's other files, .nb?, when its source changes
        try:
            lock.acquire(timeout=PATIENCE)
        except Timeout:
            return None
        found = load(files, key)
        if found is None:
            compiling[path] = lock
        else:
            lock.release()
        return found

    def tell(files):
        if files._index_path in compiling:
            compiling.pop(files._index_path).release()

    def save_and_tell(files, key, data):
        save(files, key, data)
        tell(files)

    def compile_or_tell(kernel, signature):
        try:
            return compile_it(kernel, signature)
        except Exception:
            if files := getattr(kernel._cache, "_cache_file", None):
                tell(files)
            raise

    CompiledFiles.load, CompiledFiles.save, Dispatcher.compile = wait_and_load, save_and_tell, compile_or_tell
