"""Tensors of DLPack as capsules of Python, by ctypes."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

CUDA = 2  # kDLCUDA
_READ_ONLY = 1

_CODES = {"i": 0, "u": 1, "f": 2, "bf": 4, "complex": 5}
# Of the names that are no code and a number of bits.
_SPECIAL = {"bool": (6, 8), "f8e4m3": (10, 8), "f8e5m2": (12, 8)}


def type_of(dtype: str) -> tuple[int, int]:
    """DLDataTypeCode and bits."""
    if dtype in _SPECIAL:
        return _SPECIAL[dtype]
    name = dtype.rstrip("0123456789")
    return _CODES[name], int(dtype[len(name) :])


class _Tensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _Managed(Structure):
    _fields_ = [("tensor", _Tensor), ("manager", c_void_p), ("deleter", c_void_p)]


class _Versioned(Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    ]


# What a tensor needs, and the array that it is of, by its address: until its deleter is called.
_live: dict[int, tuple[Any, ...]] = {}


@CFUNCTYPE(None, c_void_p)
def _delete(address: int) -> None:
    _live.pop(address, None)


_NAMES = {False: b"dltensor", True: b"dltensor_versioned"}
# Not ctypes.pythonapi, whose functions all code of the process shares, types of arguments included.
_api = ctypes.PyDLL(None)
_new = _api.PyCapsule_New
_new.argtypes, _new.restype = [c_void_p, ctypes.c_char_p, c_void_p], ctypes.py_object
# Within a destructor the capsule has no reference left: it is passed as its address.
_is_valid = _api.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = [c_void_p, ctypes.c_char_p], ctypes.c_int
_pointer = _api.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = [c_void_p, ctypes.c_char_p], c_void_p


@CFUNCTYPE(None, c_void_p)
def _end(capsule: int) -> None:
    """Who takes a tensor renames its capsule; one that has its name still was taken by nobody."""
    for name in _NAMES.values():
        if _is_valid(capsule, name):
            _delete(_pointer(capsule, name))


def capsule(array: Any, shape: tuple[int, ...], strides: tuple[int, ...], versioned: bool) -> Any:
    """A capsule of an array's memory, which keeps the array until the deleter is called."""
    sizes = c_int64 * max(len(shape), 1)
    extents, steps = sizes(*shape), sizes(*strides)
    code, bits = type_of(array.dtype)
    tensor = _Tensor(array.address, CUDA, array.device, len(shape), code, bits, 1, extents, steps, 0)
    deleter = ctypes.cast(_delete, c_void_p)
    managed: Structure
    if versioned:
        managed = _Versioned(1, 0, None, deleter, _READ_ONLY if array.read_only else 0, tensor)
    else:
        managed = _Managed(tensor, None, deleter)
    address = ctypes.addressof(managed)
    _live[address] = (managed, extents, steps, array)
    return _new(address, _NAMES[versioned], ctypes.cast(_end, c_void_p))
