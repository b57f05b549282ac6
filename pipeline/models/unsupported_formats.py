"""Recognition of unsupported model files by their first bytes, with advice on alternatives."""

import re
from collections.abc import Callable
from dataclasses import dataclass

PICKLE = re.compile(rb"\x80[\x02-\x05]")
COMPRESSED = (b"\x1f\x8b", b"x\x01", b"x^", b"x\x9c", b"x\xda", b"BZh", b"\xfd7zXZ", b"\x04\x22\x4d\x18")  # gzip, zlib at four levels, bzip2, xz, lz4
XML = re.compile(rb"\s*<(\?xml|PMML)")
PARQUET = re.compile(rb"PAR1.*PAR1", re.S)
ZIP = b"PK\x03\x04"
DUMP = re.compile(rb'booster\[0\]|\[\s*\{\s*"nodeid"|\{\s*"name"\s*:\s*"tree"')
# XGBoost's own binary format until 2.0: a magic since 1.1, parameters in 136 bytes, and the objective's name with its length before it.
XGBOOST_BINARY = re.compile(rb"(binf)?.{136}[\x05-\x28]\0{7}[a-z]+:[a-z]+", re.S)
# Field numbers of ONNX's ModelProto (onnx.proto), and that of the graph.
FIELDS, GRAPH = frozenset((1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26)), 7
MOST_FIELDS = 1 << 12
VARINT, DELIMITED = 0, 2  # wire types of protocol buffers
WIDTHS = {1: 8, 5: 4}  # bytes of a value by other wire types
SAVE = "leafledger.save_model(model, 'model.trees')"


@dataclass(frozen=True, slots=True)
class Foreign:
    """An unsupported kind of file: how it is recognised, and what to do instead."""

    what: str
    recognise: Callable[[bytes], bool]
    instead: str


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Decode a varint, and return it with its end; IndexError at the end of the data."""
    value = 0
    for shift in range(0, 70, 7):
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            break
    return value, at


def _is_onnx(data: bytes) -> bool:
    """Return whether all bytes are fields of a ModelProto with a graph."""
    at, fields = 0, list[int]()
    try:
        while at < len(data) and len(fields) < MOST_FIELDS:
            tag, at = _varint(data, at)
            if tag >> 3 not in FIELDS or tag & 7 not in (VARINT, DELIMITED, *WIDTHS):
                return False
            fields.append(tag >> 3)
            if tag & 7 in WIDTHS:
                at += WIDTHS[tag & 7]
                continue
            number, at = _varint(data, at)
            at += number if tag & 7 == DELIMITED else 0
    except IndexError:
        return False
    return at == len(data) and GRAPH in fields


FOREIGN = (
    Foreign(
        "a pickle, as joblib and mlflow write too, which is not read since reading it may run anything",
        lambda data: PICKLE.match(data) is not None,
        f"load it where you trust it, and save the model as its library does, or by {SAVE}",
    ),
    Foreign(
        "compressed",
        lambda data: data.startswith(COMPRESSED),
        f"unpack it; if joblib wrote it, load it where you trust it, and save the model as its library does, or by {SAVE}",
    ),
    Foreign("Parquet, which holds rows and no model", lambda data: PARQUET.fullmatch(data) is not None, "are model and data swapped?"),
    Foreign("a zip archive", lambda data: data.startswith(ZIP), "name the model file inside, unpacked"),
    Foreign(
        "an ONNX file, which has no weights of leaves and so nothing to average absent features by",
        _is_onnx,
        "use the file that the model's own library writes",
    ),
    Foreign("XML, as PMML is", lambda data: XML.match(data) is not None, "use the file that the model's own library writes"),
    Foreign(
        "in XGBoost's own binary format, which versions before 2.1 write to files that are not called .json or .ubj",
        lambda data: XGBOOST_BINARY.match(data) is not None,
        "load it by one of these versions, from 1.0 on, and save it as .json",
    ),
    Foreign(
        "a dump for people, which lacks what predictions need",
        lambda data: DUMP.match(data) is not None,
        "save the model with the library's save_model",
    ),
)


def recognise_foreign(data: bytes) -> str | None:
    """Describe an unsupported file, with an alternative."""
    return next((f"is {each.what}; {each.instead}" for each in FOREIGN if each.recognise(data)), None)
