"""Folders and object stores: reading, writing once, and arrays mapped by workers."""
