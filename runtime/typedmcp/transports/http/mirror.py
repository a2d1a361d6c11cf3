"""The headers that repeat parts of a 2026-07-28 message, so that intermediaries can route without reading it.

Follows basic/transports/streamable-http (Value Encoding, Server Validation): a value that a header cannot carry as it
is travels as ``=?base64?...?=`` over its UTF-8; headers and body are compared after decoding.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from typedmcp.core.errors import MCPError
from typedmcp.core.narrow import is_object
from typedmcp.core.param_headers import Mark
from typedmcp_wire.methods import METHODS
from typedmcp_wire.revisions import HEADER_MISMATCH, METHOD_HEADER, NAME_HEADER, PROTOCOL_VERSION_HEADER

_BEGIN, _END = "=?base64?", "?="
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_ALLOWED = re.compile(r"[\x20-\x7e\t]*")

PARAM_HEADER_PREFIX = "Mcp-Param-"
_NUMBER = re.compile(r"-?[0-9]{1,16}(?:\.[0-9]{1,16})?")
_SAFE = 2**53 - 1

Get = Callable[[str], str | None]
"""A request's headers: name (any case) to value, None when absent."""


def encode_value(value: str) -> str:
    """`value` as a header can carry it."""
    if _PLAIN.fullmatch(value) and not (value.startswith(_BEGIN) and value.endswith(_END)):
        return value
    return _BEGIN + base64.b64encode(value.encode("utf-8", "surrogatepass")).decode() + _END


def decode_value(header: str) -> str | None:
    """The value a header stands for; None when it is malformed."""
    header = header.strip(" \t")
    if not _ALLOWED.fullmatch(header):
        return None
    if not (header.startswith(_BEGIN) and header.endswith(_END) and len(header) >= len(_BEGIN) + len(_END)):
        return header
    inner = header[len(_BEGIN) : -len(_END)]
    try:
        raw = base64.b64decode(inner, validate=True)
        text = raw.decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    # Python lets stray trailing bits pass; only the one way to write a value is taken.
    return text if base64.b64encode(raw).decode() == inner else None


def check_mirror(get: Get, method: str, version: object, params: dict[str, Any]) -> None:
    """Compare the routing headers with the body.

    Args:
        version: The revision the body names.
        params: The members of ``params``; only the one that names a tool, prompt or resource is looked at.

    Raises:
        MCPError: -32020, saying which header is missing or differs; the client's value is not repeated.
    """
    _compare(get, PROTOCOL_VERSION_HEADER, version)
    _compare(get, METHOD_HEADER, method)
    known = METHODS.get(method)
    if known is not None and known.name_header is not None:
        _compare(get, NAME_HEADER, params.get(known.name_header))


def check_params(get: Get, marks: tuple[Mark, ...], arguments: object) -> None:
    """Compare the headers of marked parameters with the arguments.

    Raises:
        MCPError: -32020, as in :func:`check_mirror`.
    """
    for mark in marks:
        header = PARAM_HEADER_PREFIX + mark.header
        expected = _argument(arguments, mark.path)
        given = get(header)
        if expected is None:
            if given is not None:
                raise _mismatch(header, "repeats an argument that is not there", None)
        elif isinstance(expected, (str, int, float)):
            if given is None:
                raise _mismatch(header, "is missing", expected)
            if not _says(given, expected):
                raise _mismatch(header, "differs from the body", expected)
        elif given is not None:  # without a header, the tool says that this is no value of the parameter
            raise _mismatch(header, "differs from the body", None)


def _argument(arguments: object, path: tuple[str, ...]) -> object:
    """The value at a path; None where there is none."""
    for name in path:
        if not is_object(arguments):
            return None
        arguments = arguments.get(name)
    return arguments


def _says(given: str, expected: str | int | float) -> bool:
    if isinstance(expected, str):
        return decode_value(given) == expected
    text = decode_value(given)
    if text is None:
        return False
    if isinstance(expected, bool):
        return text == ("true" if expected else "false")
    if not _NUMBER.fullmatch(text) or abs(expected) > _SAFE:
        return False
    return Decimal(text) == Decimal(expected)


def _mismatch(header: str, what: str, expected: object) -> MCPError:
    return MCPError(HEADER_MISMATCH, f"The header {header} {what}.", {"header": header, "expected": expected})


def _compare(get: Get, header: str, expected: object) -> None:
    given = get(header)
    if given is None:
        raise MCPError(HEADER_MISMATCH, f"The header {header} is missing.", {"header": header, "expected": expected})
    if given == expected and given.isascii() and given.isprintable() and not given.startswith(_BEGIN):
        return  # nearly every header
    if decode_value(given) != expected:
        raise MCPError(
            HEADER_MISMATCH, f"The header {header} differs from the body.", {"header": header, "expected": expected}
        )
