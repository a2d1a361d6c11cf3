"""What an app offers of one kind, in the order of registration, listed a page at a time.

Rules:
- A cursor names the last entry of the page before by its number.  Numbers are never used again, so a cursor holds
  while entries come and go: nothing that stays is skipped or listed twice.
- An app that registers the same things in the same order gives the same cursors: any process of it can go on.
- A feature is there from the first registration on, and stays when its last entry is removed: the list is empty then.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Generic, TypeVar

from typedmcp.core.errors import MCPError
from typedmcp_wire.revisions import INVALID_PARAMS

T = TypeVar("T")

DEFAULT_PAGE_SIZE = 500
"""How many entries a page has.  Many clients read the first page only, so it is large."""

_CURSOR = re.compile(r"([a-z]+):([1-9][0-9]{0,15})")


class Registry(Generic[T]):
    """Entries of one kind by key.

    Args:
        kind: What it holds, in lower-case letters: part of the cursors, so that one list's is not taken for another's.
        page_size: How many entries a page has.
    """

    def __init__(self, kind: str, page_size: int = DEFAULT_PAGE_SIZE) -> None:
        self.kind = kind
        self.served = False
        """Whether there has ever been an entry."""
        self._page_size = page_size
        self._entries: dict[str, T] = {}
        self._numbers: dict[str, int] = {}
        self._last = 0
        self.get = self._entries.get
        """The entry of a key, or None."""

    def __iter__(self) -> Iterator[T]:
        # A copy: functions in worker threads may add to it meanwhile.
        return iter(list(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, key: str, entry: T) -> None:
        """Put an entry at the end; whether its key is free is the caller's business."""
        self._last += 1
        self._numbers[key] = self._last
        self._entries[key] = entry
        self.served = True

    def remove(self, key: str) -> bool:
        """Take an entry out; False when there is none of that key."""
        self._numbers.pop(key, None)
        return self._entries.pop(key, None) is not None

    def page(self, cursor: str | None) -> tuple[list[T], str | None]:
        """The entries of one page and the cursor of the next, None on the last.

        Raises:
            MCPError: the cursor is not one of this list's.
        """
        after = 0 if cursor is None else self._number(cursor)
        entries = list(self._entries.items())
        if after == 0 and len(entries) <= self._page_size:
            return [entry for _, entry in entries], None
        numbers = self._numbers
        rest = [(key, entry) for key, entry in entries if numbers.get(key, 0) > after]
        page = rest[: self._page_size]
        more = len(rest) > len(page)
        return [entry for _, entry in page], self._cursor(numbers[page[-1][0]]) if more else None

    def _cursor(self, number: int) -> str:
        return base64.urlsafe_b64encode(f"{self.kind}:{number}".encode()).decode().rstrip("=")

    def _number(self, cursor: str) -> int:
        try:
            text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        except (ValueError, binascii.Error):
            text = ""
        found = _CURSOR.fullmatch(text)
        number = int(found[2]) if found is not None and found[1] == self.kind else 0
        if not 0 < number <= self._last or self._cursor(number) != cursor:
            raise MCPError(INVALID_PARAMS, "There is no such page: the cursor is not one of this list's.")
        return number
