"""Files and objects, put where they are by other means than ours."""

from pathlib import Path

import s3fs


def put(uri, data=b"x"):
    """Write a file or an object by other means."""
    if uri.startswith("s3://"):
        s3fs.S3FileSystem().pipe_file(uri, data)
    else:
        Path(uri).parent.mkdir(parents=True, exist_ok=True)
        Path(uri).write_bytes(data)
