"""Files of compiled kernels in Numba's cache."""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from pickle import dumps
from typing import Any

from numba.core.caching import IndexDataCacheFile

from .notices import announce


class CompiledFiles(IndexDataCacheFile):
    """Cache files of a kernel's compiled code, named by the sources, signature and processor.

    Numba numbers these files by the entries of its index. Two processes that compile a kernel for two signatures at once then take the same number,
    and one loads the other's code: wrong results, silently. Here entries never share a file; a lost index entry costs a recompilation at most.
    Changed sources get a new index; the old one is not read, since its types may be gone.
    """

    def __init__(self, cache_path: str, filename_base: str, source_stamp: str):
        super().__init__(cache_path, f"{filename_base}-{source_stamp[:16]}", source_stamp)
        self._stale = f"{filename_base.rpartition('-')[0]}-*.nb?"  # files of the same kernel, whatever its line number

    def load(self, key: Any) -> Any:
        """Load the compiled code; return None if there is none."""
        found = super().load(key)
        if found is None:
            announce()
        return found

    def save(self, key: Any, data: Any) -> None:
        """Write the code, then its index entry, so that the index lists existing files only; remove code of other sources.

        On a full disk nothing is cached, and the kernel serves this process only.
        """
        name = self._data_name_pattern.format(number=int(sha256(dumps(key)).hexdigest()[:16], 16))
        with suppress(OSError):
            self._save_data(name, data)
            self._save_index(self._load_index() | {key: name})
            for path in Path(self._cache_path).glob(self._stale):
                if self._source_stamp[:16] not in path.name:
                    path.unlink(missing_ok=True)
