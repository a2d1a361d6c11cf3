"""Lists a page at a time: cursors are opaque and hold while the lists change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.server.client import ALL, Client, client

from typedmcp import App
from typedmcp.core.errors import UsageError
from typedmcp.server.registry import DEFAULT_PAGE_SIZE

Add = Callable[[App, int], Any]


def offered() -> str:
    return ""


def of_n(n: str) -> str:
    return n


LISTS: dict[str, tuple[str, str, Add, Add]] = {
    "tools/list": (
        "tools",
        "name",
        lambda app, n: app.tool(offered, name=f"n{n}"),
        lambda app, n: app.remove_tool(f"n{n}"),
    ),
    "prompts/list": (
        "prompts",
        "name",
        lambda app, n: app.prompt(offered, name=f"n{n}"),
        lambda app, n: app.remove_prompt(f"n{n}"),
    ),
    "resources/list": (
        "resources",
        "name",
        lambda app, n: app.resource(f"r://{n}", name=f"n{n}")(offered),
        lambda app, n: app.remove_resource(f"r://{n}"),
    ),
    "resources/templates/list": (
        "resourceTemplates",
        "name",
        lambda app, n: app.resource(f"t{n}://{{n}}", name=f"n{n}")(of_n),
        lambda app, n: app.remove_resource(f"t{n}://{{n}}"),
    ),
}


def filled(method: str, count: int, **options: Any) -> App:
    made = App("a", **options)
    for number in range(count):
        LISTS[method][2](made, number)
    return made


async def page(peer: Client, method: str, cursor: str | None = None) -> tuple[list[int], str | None, Any]:
    result = await peer.result(method, {} if cursor is None else {"cursor": cursor})
    member, name, _, _ = LISTS[method]
    return [int(entry[name][1:]) for entry in result[member]], result.get("nextCursor"), result


async def pages(peer: Client, method: str) -> list[list[int]]:
    found: list[list[int]] = []
    cursor: str | None = None
    while True:
        entries, cursor, _ = await page(peer, method, cursor)
        found.append(entries)
        if cursor is None:
            return found


@pytest.mark.req("M-232", "M-231", "M-193", "M-191")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("method", LISTS)
async def test_every_entry_is_on_one_page(revision: str, method: str) -> None:  # F112, F113, F114
    peer = await client(filled(method, 5, page_size=2), revision)
    assert await pages(peer, method) == [[0, 1], [2, 3], [4]]
    assert await pages(peer, method) == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize(("count", "sizes"), [(1, [1]), (2, [2]), (3, [2, 1]), (4, [2, 2])])
async def test_a_full_last_page_has_no_cursor(method: str, count: int, sizes: list[int]) -> None:
    found = await pages(Client(filled(method, count, page_size=2)), method)
    assert [len(entries) for entries in found] == sizes


@pytest.mark.req("M-231")
async def test_a_page_is_large_unless_told_otherwise() -> None:  # F114
    found = await pages(Client(filled("tools/list", DEFAULT_PAGE_SIZE + 1)), "tools/list")
    assert [len(entries) for entries in found] == [DEFAULT_PAGE_SIZE, 1]
    for size in (0, -1):
        with pytest.raises(UsageError, match="page_size"):
            App("a", page_size=size)


@pytest.mark.req("M-232")
@pytest.mark.parametrize("method", LISTS)
async def test_cursors_hold_while_the_list_changes(method: str) -> None:
    made = filled(method, 6, page_size=2)
    peer = Client(made)
    _, cursor, _ = await page(peer, method)
    add, remove = LISTS[method][2:]
    add(made, 6)
    remove(made, 0)
    remove(made, 1)  # the entry the cursor stands at
    remove(made, 3)
    assert (await page(peer, method, cursor))[0] == [2, 4]
    add(made, 1)
    _, following, _ = await page(peer, method, cursor)
    assert (await page(peer, method, following))[0] == [5, 6]
    for number in (2, 4, 5, 6, 1):
        remove(made, number)
    assert await page(peer, method, cursor) == ([], None, (await page(peer, method, cursor))[2])


@pytest.mark.req("M-232")
async def test_another_process_of_the_same_app_can_go_on() -> None:
    one, other = (Client(filled("tools/list", 5, page_size=2)) for _ in range(2))
    _, cursor, _ = await page(one, "tools/list")
    assert (await page(other, "tools/list", cursor))[0] == [2, 3]


@pytest.mark.req("M-232", "M-230")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("method", LISTS)
async def test_a_cursor_of_something_else_is_invalid(revision: str, method: str) -> None:
    made = filled(method, 3, page_size=2)
    peer = await client(made, revision)
    _, cursor, _ = await page(peer, method)
    assert cursor
    other = next(name for name in LISTS if name != method and name.split("/")[0] != method.split("/")[0])
    foreign = Client(filled(other, 3, page_size=2))
    _, theirs, _ = await page(foreign, other)
    wrong = [
        "",
        "x",
        "\u00e9",
        cursor + "=",
        cursor + "A",
        cursor[:-1],
        cursor.lower(),
        f" {cursor}",
        theirs,
        "MQ",
        "0",
    ]
    for value in wrong:
        if value != cursor:
            assert (await peer.error(method, {"cursor": value}))["code"] == -32602, value


@pytest.mark.req("M-181", "M-179")
@pytest.mark.parametrize("method", LISTS)
async def test_all_pages_have_one_cache_scope(method: str) -> None:
    peer = Client(filled(method, 3, page_size=1))
    cursor: str | None = None
    scopes: list[Any] = []
    for _ in range(3):
        _, cursor, result = await page(peer, method, cursor)
        scopes.append((result["cacheScope"], result["ttlMs"]))
    assert len(scopes) == 3
    assert len(set(scopes)) == 1
