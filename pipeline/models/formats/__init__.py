"""Formats that several libraries write: FlatBuffers, UBJSON, JSON."""
