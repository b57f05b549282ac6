"""File systems in the place of others' stores, with the ways of these that matter."""

from typing import ClassVar

import fsspec
from fsspec.asyn import AsyncFileSystem, sync
from fsspec.implementations.local import LocalFileSystem
from fsspec.utils import infer_storage_options


class Listed(LocalFileSystem):
    """A store that says of links, as it lists them, what they are themselves, and asked for one what it leads to: as over SFTP."""

    protocol = "listed"


class Hosted(LocalFileSystem):
    """A store whose names are paths, without the host that they are on: as over SFTP, FTP, SMB or of HDFS."""

    protocol = "hosted"

    def __init__(self, host, **given):
        super().__init__(**given)
        self.host = host

    @classmethod
    def _strip_protocol(cls, path):
        return infer_storage_options(path)["path"]

    @staticmethod
    def _get_kwargs_from_urls(path):
        asked = infer_storage_options(path)
        return {name: asked[name] for name in ("host", "username") if name in asked}


class RefusedError(Exception):
    """As Azure's client has it, which is no OSError."""

    __module__ = "azure.core.exceptions"

    def __init__(self, status_code):
        super().__init__(f"the service said {status_code}")
        self.status_code = status_code


class Cloud(AsyncFileSystem):
    """A store whose ``isdir`` knows no deadlines, as Azure's; and where a name that a list is kept of is a folder's, as at Google."""

    protocol = "cloud"
    cachable = False
    objects: ClassVar[dict[str, bytes]] = {}
    errors: ClassVar[dict[str, Exception]] = {}  # by the beginning of what is asked for

    def _answer(self, path):
        path = self._strip_protocol(path)
        for start, error in self.errors.items():
            if path.startswith(start):
                raise error
        return path

    async def _info(self, path, **_):
        path = self._answer(path)
        if path in self.objects and path not in self.dircache:
            return {"name": path, "size": len(self.objects[path]), "type": "file", "etag": f'"{hash(self.objects[path])}"'}
        if path in self.dircache or any(name.startswith(f"{path}/") for name in self.objects):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    async def _ls(self, path, detail=True, **_):
        path = self._answer(path)
        below = {f"{path}/{name[len(path) + 1 :].partition('/')[0]}" for name in self.objects if name.startswith(f"{path}/")}
        return [await self._info(name) for name in sorted(below)] if detail else sorted(below)

    async def _cat_file(self, path, start=None, end=None, **_):
        return self.objects[self._answer(path)][start:end]

    def isdir(self, path):
        return sync(self.loop, self._isdir, path)


for each in (Listed, Hosted, Cloud):
    fsspec.register_implementation(each.protocol, each, clobber=True)
