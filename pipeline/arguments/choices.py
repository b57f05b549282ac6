"""Literal types of options with fixed choices."""

from typing import Literal, get_args

MODEL = "model"  # background of the model's own leaf weights
FILE = "file"  # items of work: one for every file, or several

Precision = Literal["float32", "float64"]
MissingLabels = Literal["count", "refuse"]
Combinations = Literal["shared", "own"]
Space = Literal["margin", "probability", "response", "loss"]
Sign = Literal["both", "raises", "lowers"]
Columns = Literal["wide", "top", "both"]
IfChanged = Literal["refuse", "replace", "keep"]
Device = Literal["cpu", "cuda", "auto"]
COMBINATIONS: tuple[str, ...] = get_args(Combinations)
SPACES: tuple[Space, ...] = get_args(Space)
MARGIN, PROBABILITY, RESPONSE, LOSS = SPACES
SHARED, OWN = COMBINATIONS
INDICES = ("SII", "k-SII", "STII", "FSII", "BII", "FBII", "Moebius", "Co-Moebius")  # those of the kernels, which options are read without
DEVICES: tuple[Device, ...] = get_args(Device)
CPU, CUDA, AUTO = DEVICES
