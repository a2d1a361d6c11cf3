"""Media types: what a client takes, what it sends (RFC 9110, sections 8.3 and 12.5.1)."""

from __future__ import annotations

from functools import lru_cache

JSON = "application/json"
EVENT_STREAM = "text/event-stream"


@lru_cache(maxsize=256)  # clients differ in few headers; a long one is not worth keeping, but harmless
def accepts(header: str | None, media_type: str) -> bool:
    """Whether an ``Accept`` header takes a media type; no header takes all, ``q=0`` excludes.

    The most specific range decides, as HTTP has it.
    """
    if header is None:
        return True
    kind = media_type.partition("/")[0]
    best, quality = -1, 0.0
    for entry in header.split(","):
        media_range, *parameters = (part.strip() for part in entry.split(";"))
        rank = {media_type: 2, f"{kind}/*": 1, "*/*": 0}.get(media_range.lower())
        if rank is not None and rank > best:
            best, quality = rank, _quality(parameters)
    return quality > 0


@lru_cache(maxsize=256)
def names(header: str | None, media_type: str) -> bool:
    """Whether an ``Accept`` header names a media type itself, wildcards apart, without excluding it."""
    if header is None:
        return False
    named = {entry.partition(";")[0].strip().lower() for entry in header.split(",")}
    return media_type in named and accepts(header, media_type)


@lru_cache(maxsize=256)
def is_json(header: str | None) -> bool:
    """Whether a ``Content-Type`` says JSON in UTF-8; parameters and case do not matter."""
    if header is None:
        return False
    essence, *parameters = (part.strip().lower() for part in header.split(";"))
    given = (part.partition("=") for part in parameters)
    charsets = [value.strip('" ') for name, _, value in given if name.strip() == "charset"]
    return essence == JSON and all(charset in ("utf-8", "utf8") for charset in charsets)


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
