"""Folders and object stores: reading, writing once, and arrays that workers map."""
