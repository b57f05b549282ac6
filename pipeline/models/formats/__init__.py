"""Formats that more than one library writes: FlatBuffers, UBJSON, JSON."""
