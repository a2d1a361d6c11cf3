"""The promise of the whole: change the schema, generate, and everything follows without a hand-written line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.codegen import schemas
from tests.codegen.conftest import Extended
from tests.codegen.extension import NEXT, NOW

OLDER = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


def run(extended: Extended, script: str) -> None:
    """Run a script with the extended wire in place of the committed one, warnings as errors."""
    environment = schemas.environment()
    path = environment["PYTHONPATH"].split(os.pathsep)
    path[path.index(str(schemas.GENERATED.parent))] = str(extended.folder)
    environment["PYTHONPATH"] = os.pathsep.join(path)
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, env=environment, cwd=extended.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_generates(extended: Extended) -> None:
    assert extended.run.returncode == 0, extended.run.stderr
    assert extended.run.stderr == ""


def test_what_changed_is_told_by_type_field_method_and_revision(extended: Extended) -> None:
    lines = extended.run.stdout.splitlines()
    assert lines[:-1] == [
        f"+ revision {NEXT}",
        f"+ field Tool.costHint  ({NEXT})",
        f"+ method weather/forecast  ({NEXT})",
        f"+ method weather/noon  ({NOW})",
        f"~ type ClientRequest  ({NOW}, {NEXT})",
        f"+ type Day  ({NEXT})",
        f"+ type Dry  ({NEXT})",
        f"+ type ForecastRequest  ({NEXT})",
        f"+ type ForecastRequestParams  ({NEXT})",
        f"+ type ForecastResult  ({NEXT})",
        f"~ type LoggingLevel  ({NEXT})",
        f"+ type NoonRequest  ({NOW})",
        f"+ type NoonRequestParams  ({NOW})",
        f"+ type NoonResult  ({NOW})",
        f"~ type Tool  ({NEXT})",
        f"+ type Wet  ({NEXT})",
    ]
    assert "files, " in lines[-1]


TABLE = f"""
from typedmcp_wire import methods, revisions, history
from typedmcp_wire.types import ForecastRequestParams, ForecastResult

assert revisions.LATEST_PROTOCOL_VERSION == {NEXT!r}
assert revisions.MODERN_REVISIONS == ({NOW!r}, {NEXT!r})
assert revisions.MCP_PROTOCOL_VERSION == "2025-11-25"
forecast = methods.METHODS["weather/forecast"]
assert forecast is methods.FORECAST
assert (forecast.params, forecast.result) == (ForecastRequestParams, ForecastResult)
assert forecast.client == frozenset([{NEXT!r}]) and forecast.server == frozenset()
assert forecast.attribute == "forecast" and forecast.kind == "request" and forecast.cancellable
assert methods.NOON.client == frozenset([{NOW!r}, {NEXT!r}])
assert {NEXT!r} in methods.METHODS["tools/call"].client
assert {NEXT!r} not in methods.METHODS["ping"].client
assert history.FIELDS["Tool"]["cost_hint"][0] == {NEXT!r}
"""

GUARDS = f"""
from typedmcp import validate, validate_message
from typedmcp.core.errors import UsageError
from typedmcp_wire import guards

tool = {{"name": "t", "inputSchema": {{"type": "object"}}, "costHint": -1}}
assert [v.pointer for v in validate(tool, "Tool")] == ["/costHint"]
assert [v.pointer for v in validate(tool, "Tool", {NEXT!r})] == ["/costHint"]
for revision in {(*OLDER, NOW)!r}:
    assert validate(tool, "Tool", revision) == ()
    assert validate("trace", "LoggingLevel", revision) and not validate("info", "LoggingLevel", revision)
assert not validate("trace", "LoggingLevel")
assert [v.pointer for v in validate({{"days": [{{"millimetres": "x"}}, {{"hours": None}}]}}, "ForecastResult")] == [
    "/resultType", "/days/0/millimetres"] or validate({{"days": [{{"millimetres": "x"}}]}}, "ForecastResult")
try:
    validate({{}}, "ForecastResult", {NOW!r})
except UsageError:
    pass
else:
    raise SystemExit("older revisions must not know the definition")
assert "ForecastResult" in guards.definitions({NEXT!r}) and "NoonResult" in guards.definitions({NOW!r})

meta = {{"io.modelcontextprotocol/protocolVersion": {NEXT!r}, "io.modelcontextprotocol/clientCapabilities": {{}}}}
params = {{"placeName": "x", "days": 0, "_meta": meta}}
message = {{"jsonrpc": "2.0", "id": 1, "method": "weather/forecast", "params": params}}
assert [v.pointer for v in validate_message(message, {NEXT!r}, "client")] == ["/params/days"]
assert [v.pointer for v in validate_message(message, {NOW!r}, "client")] == ["/method"]
assert [v.pointer for v in validate_message(message, {NEXT!r}, "server")] == ["/method"]
"""

TYPES = """
import msgspec
from typedmcp_wire import decode, encode
from typedmcp_wire.types import Day, Dry, ForecastRequestParams, ForecastResult, LoggingLevel, Tool, Wet

text = b'{"days":[{"millimetres":2.5},{"hours":3},{"hours":null},{}],"resultType":"complete"}'
result = decode(text, "ForecastResult")
assert [type(day) for day in result.days] == [Wet, Dry, Dry, Dry]
assert [getattr(day, "hours", "-") for day in result.days] == ["-", 3, None, msgspec.UNSET]
assert isinstance(result.days[0], Day) and not isinstance("x", Day)
assert encode(result) == text
assert encode(Tool(name="t", input_schema={}, cost_hint=1.5)) == b'{"name":"t","inputSchema":{},"costHint":1.5}'
assert decode(b'"trace"', "LoggingLevel") == "trace"
params = ForecastRequestParams(place_name="x", from_="2027-01-01", meta={})
assert encode(params) == b'{"placeName":"x","from":"2027-01-01","_meta":{}}', encode(params)
"""

PROJECTION = f"""
import json
from importlib import resources
from jsonschema import Draft202012Validator

folder = resources.files("typedmcp_wire.schemas")
read = lambda revision: json.loads((folder / f"{{revision}}.schema.json").read_text())
new, old = read({NEXT!r}), read({NOW!r})
Draft202012Validator.check_schema(new)
wanted = {{"description": "What a call costs.", "type": "number", "minimum": 0}}
assert new["$defs"]["Tool"]["properties"]["costHint"] == wanted
assert "costHint" not in old["$defs"]["Tool"]["properties"]
assert "trace" in new["$defs"]["LoggingLevel"]["enum"] and "trace" not in old["$defs"]["LoggingLevel"]["enum"]
assert "ForecastResult" in new["$defs"] and "ForecastResult" not in old["$defs"]
assert new["$defs"]["ForecastRequestParams"]["required"] == ["placeName", "_meta"]
table = json.loads((folder / "methods.json").read_text())
assert table[{NEXT!r}]["weather/forecast"]["senders"] == ["client"]
assert "weather/forecast" not in table[{NOW!r}] and "weather/noon" in table[{NOW!r}]
"""

SERVE = f"""
import asyncio
import msgspec
from typedmcp import MCPClient, MCPServer, connect
from typedmcp.core.errors import MCPError, UnsupportedMethod
from typedmcp.server.context import Context
from typedmcp_wire.servicer import Servicer
from typedmcp_wire.types import Dry, ForecastResult, ListToolsResult, NoonResult, Tool, Wet

class Weather(Servicer[Context]):
    async def forecast(self, params, context):
        return ForecastResult(days=[Wet(millimetres=params.days or 0), Dry(hours=None)], result_type="complete")

    async def noon(self, params, context):
        return NoonResult(at=context.revision, result_type="complete")

    async def list_tools(self, params, context):
        return ListToolsResult(tools=[Tool(name="t", input_schema={{"type": "object"}}, cost_hint=2)])

def ask(method, revision, **params):
    meta = {{"io.modelcontextprotocol/protocolVersion": revision, "io.modelcontextprotocol/clientCapabilities": {{}}}}
    return {{"jsonrpc": "2.0", "id": 1, "method": method, "params": {{**params, "_meta": meta}}}}

async def main():
    server = MCPServer(name="w", version="1", servicer=Weather())

    answer = await server.dispatch(ask("weather/forecast", {NEXT!r}, placeName="x", days=4))
    result = msgspec.to_builtins(answer.result)
    assert result["days"] == [{{"millimetres": 4}}, {{"hours": None}}] and result["resultType"] == "complete", result
    answer = await server.dispatch(ask("weather/forecast", {NOW!r}, placeName="x"))
    assert answer.error.code == -32601, answer
    answer = await server.dispatch(ask("weather/forecast", {NEXT!r}, days="x"))
    assert answer.error.code == -32602, answer
    assert "/params/days" in [v["pointer"] for v in answer.error.data["violations"]], answer.error.data
    answer = await server.dispatch(ask("weather/noon", {NOW!r}))
    assert answer.result.at == {NOW!r}
    bare = MCPServer(name="b", version="1", servicer=Servicer())
    answer = await bare.dispatch(ask("weather/forecast", {NEXT!r}, placeName="x"))
    assert (answer.error.code, answer.error.message) == (-32601, "Method not found: weather/forecast")

    async with connect(server) as client:
        assert client.protocol_version == {NEXT!r}
        result = await client.forecast("x", from_="2027-01-02", days=3)
        assert result.days[0] == Wet(millimetres=3)
        assert (await client.noon()).at == {NEXT!r}
        assert (await client.list_tools()).tools[0].cost_hint == 2
    async with connect(server, version={NOW!r}) as client:
        assert (await client.noon()).at == {NOW!r}
        try:
            await client.forecast("x")
        except UnsupportedMethod as error:
            assert {NEXT!r} in str(error), error
        else:
            raise SystemExit("the older revision has no such method")
    for version in {OLDER!r}:
        async with connect(server, version=version) as client:
            assert (await client.list_tools()).tools[0].cost_hint is None, version

asyncio.run(main())
"""


@pytest.mark.parametrize(
    "script",
    [TABLE, GUARDS, TYPES, PROJECTION, SERVE],
    ids=["table", "guards", "types", "projection", "server and client"],
)
def test_everything_follows(extended: Extended, script: str) -> None:
    run(extended, script)


def test_the_modern_server_leaves_out_what_the_revision_lacks(extended: Extended) -> None:
    """A field of a newer modern revision does not reach a client of an older one."""
    run(
        extended,
        f"""
import asyncio
from typedmcp import MCPServer, connect
from typedmcp.server.context import Context
from typedmcp_wire.servicer import Servicer
from typedmcp_wire.types import ListToolsResult, Tool

class Tools(Servicer[Context]):
    async def list_tools(self, params, context):
        return ListToolsResult(tools=[Tool(name="t", input_schema={{"type": "object"}}, cost_hint=2)])

async def main():
    server = MCPServer(name="w", version="1", servicer=Tools())
    for version, cost in (({NEXT!r}, 2), ({NOW!r}, None)):
        async with connect(server, version=version) as client:
            assert (await client.list_tools()).tools[0].cost_hint == cost, version

asyncio.run(main())
""",
    )


def lines(path: Path) -> Iterator[str]:
    """Lines without the digest of the schema."""
    for line in path.read_text("utf-8").splitlines():
        if "from schema " not in line:
            yield line


@pytest.mark.parametrize("revision", OLDER)
def test_older_revisions_stay_as_they_were(extended: Extended, revision: str) -> None:
    """To the byte: the plain schema and the guards."""
    for name in (f"schemas/{revision}.schema.json", f"guards/r{revision.replace('-', '_')}.py"):
        assert (extended.wire / name).read_bytes() == (schemas.GENERATED / name).read_bytes()


@pytest.mark.parametrize("name", ["types/content.py", "types/sampling.py", "codec.py", "guards/support.py"])
def test_untouched_modules_stay_as_they_were(extended: Extended, name: str) -> None:
    assert list(lines(extended.wire / name)) == list(lines(schemas.GENERATED / name))
