"""Drive a server with the client of mcp 1.x; prints one line of JSON that says what was seen.

The argument is a JSON object: `command` (the server's), `env` (for the server).
"""

import asyncio
import json
import sys
from datetime import timedelta

from mcp import ClientSession, McpError, StdioServerParameters, stdio_client, types


def dumped(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def attempt(work):
    """The result of a request, or its error."""
    try:
        return dumped(await work)
    except McpError as error:
        return {"error": {"code": error.error.code, "message": error.error.message}}


async def talk(session, saw):
    opened = await session.initialize()
    saw["revision"] = opened.protocolVersion
    saw["server"] = dumped(opened.serverInfo)
    saw["capabilities"] = dumped(opened.capabilities)
    saw["instructions"] = opened.instructions
    saw["tools"] = {tool.name: dumped(tool) for tool in (await session.list_tools()).tools}
    saw["resources"] = [dumped(each) for each in (await session.list_resources()).resources]
    saw["add"] = await attempt(session.call_tool("add", {"a": 2, "b": 3}))
    saw["bad"] = await attempt(session.call_tool("add", {"a": 2, "c": "three"}))
    saw["unknown"] = await attempt(session.call_tool("subtract", {}))
    saw["read"] = await attempt(session.read_resource("calculator://about"))
    saw["missing"] = await attempt(session.read_resource("calculator://nothing"))
    saw["prompts"] = await attempt(session.list_prompts())

    saw["progress"] = []

    async def progressed(progress, total, message):
        saw["progress"].append([progress, total, message])

    saw["total"] = await attempt(session.call_tool("total", {"numbers": [1, 2.5, 4]}, progress_callback=progressed))
    saw["ping"] = await attempt(session.send_ping())
    many = [session.call_tool("add", {"a": n, "b": n}) for n in range(20)]
    saw["many"] = [result.structuredContent for result in await asyncio.gather(*many)]
    if "nap" in saw["tools"]:
        await more(session, saw)


async def more(session, saw):
    """What only the bigger server has."""
    saw["refuse"] = await attempt(session.call_tool("refuse"))
    saw["crash"] = await attempt(session.call_tool("crash"))
    saw["chatter"] = await attempt(session.call_tool("chatter", {"text": "\u2028\U0001f600 ünïcode\n"}))

    # This client tells nobody that it has given up; one has to say so oneself.
    for _ in range(2):
        number = session._request_id
        saw["timeout"] = await attempt(session.call_tool("nap", {"seconds": 30}, timedelta(seconds=0.3)))
        params = types.CancelledNotificationParams(requestId=number, reason="tired of waiting")
        await session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
    saw["blocking"] = await asyncio.gather(
        attempt(session.call_tool("block", {"seconds": 0.3})), attempt(session.call_tool("add", {"a": 1, "b": 1}))
    )
    saw["interruptions"] = await attempt(session.call_tool("interruptions"))


async def main():
    order = json.loads(sys.argv[1])
    program, *words = order["command"]
    server = StdioServerParameters(command=program, args=words, env=order["env"])
    saw = {}
    patience = timedelta(seconds=20)
    async with (
        asyncio.timeout(50),
        stdio_client(server) as (reading, writing),
        ClientSession(reading, writing, read_timeout_seconds=patience) as session,
    ):
        await talk(session, saw)
    print(json.dumps(saw))


asyncio.run(main())
