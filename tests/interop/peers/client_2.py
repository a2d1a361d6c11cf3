"""Drive a server with the client of mcp 2.x; prints one line of JSON that says what was seen.

The argument is a JSON object: `mode` (what `Client` takes), `command` (the server's), `env` (for the server).
"""

import asyncio
import json
import sys
import warnings

from mcp import Client, MCPError, StdioServerParameters

warnings.simplefilter("ignore")  # the SDK deprecates ping


def dumped(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def attempt(work):
    """The result of a request, or its error."""
    try:
        return dumped(await work)
    except MCPError as error:
        return {"error": {"code": error.error.code, "message": error.error.message}}


async def talk(client, saw):
    saw["revision"] = client.protocol_version
    saw["server"] = client.server_info and dumped(client.server_info)
    saw["capabilities"] = dumped(client.server_capabilities)
    saw["instructions"] = client.instructions
    saw["tools"] = {tool.name: dumped(tool) for tool in (await client.list_tools()).tools}
    saw["resources"] = [dumped(each) for each in (await client.list_resources()).resources]
    saw["add"] = await attempt(client.call_tool("add", {"a": 2, "b": 3}))
    saw["bad"] = await attempt(client.call_tool("add", {"a": 2, "c": "three"}))
    saw["unknown"] = await attempt(client.call_tool("subtract", {}))
    saw["read"] = await attempt(client.read_resource("calculator://about"))
    saw["missing"] = await attempt(client.read_resource("calculator://nothing"))
    saw["prompts"] = await attempt(client.list_prompts())

    saw["progress"] = []

    async def progressed(progress, total, message):
        saw["progress"].append([progress, total, message])

    saw["total"] = await attempt(client.call_tool("total", {"numbers": [1, 2.5, 4]}, progress_callback=progressed))
    saw["ping"] = await attempt(client.send_ping())
    many = [client.call_tool("add", {"a": n, "b": n}) for n in range(20)]
    saw["many"] = [result.structured_content for result in await asyncio.gather(*many)]
    if "nap" in saw["tools"]:
        await more(client, saw)


async def more(client, saw):
    """What only the bigger server has."""
    saw["refuse"] = await attempt(client.call_tool("refuse"))
    saw["crash"] = await attempt(client.call_tool("crash"))
    saw["chatter"] = await attempt(client.call_tool("chatter", {"text": "\u2028\U0001f600 ünïcode\n"}))

    asleep = asyncio.Event()

    async def woken(*_):
        asleep.set()

    task = asyncio.create_task(client.call_tool("nap", {"seconds": 30}, progress_callback=woken))
    await asyncio.wait_for(asleep.wait(), 10)
    task.cancel()
    await asyncio.wait([task])
    saw["timeout"] = await attempt(client.call_tool("nap", {"seconds": 30}, read_timeout_seconds=0.3))
    saw["blocking"] = await asyncio.gather(
        attempt(client.call_tool("block", {"seconds": 0.3})), attempt(client.call_tool("add", {"a": 1, "b": 1}))
    )
    saw["interruptions"] = await attempt(client.call_tool("interruptions"))


async def main():
    order = json.loads(sys.argv[1])
    program, *words = order["command"]
    server = StdioServerParameters(command=program, args=words, env=order["env"])
    saw = {}
    async with asyncio.timeout(50), Client(server, mode=order["mode"], read_timeout_seconds=20) as client:
        await talk(client, saw)
    print(json.dumps(saw))


asyncio.run(main())
