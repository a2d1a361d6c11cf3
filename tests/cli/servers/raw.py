"""A server that speaks the protocol by hand: pages, odd schemas, every kind of content, and prompts."""

import json
import sys

TOOLS = [
    {"name": "first", "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}}},
    {"name": "media", "description": "\n\n  Mixed\ncontent", "inputSchema": {"type": "object"}},
    {
        "name": "odd",
        "inputSchema": {
            "type": "object",
            "required": ["x"],
            "properties": {
                "x": {"$ref": "#/$defs/Y"},
                "y": True,
                "z": {"anyOf": [{"type": "string"}, {"type": ["null", "integer"]}], "default": "d" * 99},
            },
        },
    },
    {"name": "refuse", "inputSchema": {"type": "object"}},
    {"name": "malformed", "inputSchema": {"type": "object"}},
    {"name": "die", "inputSchema": {"type": "object"}},
]
CONTENT = [
    {"type": "text", "text": '{"a": 1}'},
    {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    {"type": "resource_link", "name": "l", "uri": "demo://link"},
    {"type": "resource", "resource": {"uri": "demo://r", "text": "held"}},
    {"type": "resource", "resource": {"uri": "demo://b", "blob": "AAAA"}},
]
HELLO = {
    "protocolVersion": "2025-06-18",
    "serverInfo": {"name": "raw\x1b[2J", "version": "0"},
    "capabilities": {"resources": {}, "prompts": {}},
}


class Refusal(Exception):
    """Answered with an error."""


def call(params):
    name = params["name"]
    if name == "first":
        return {"content": [{"type": "text", "text": json.dumps(params["arguments"])}]}
    if name == "media":
        return {"content": CONTENT}
    if name == "malformed":
        return {"content": [{"type": "text", "text": 5}]}
    if name == "die":
        print("last words", file=sys.stderr)
        sys.exit(7)
    raise Refusal(-32099, "Not today.", {"why": "tired"})


def answer(method, params):
    if method == "initialize":
        return HELLO
    if method == "tools/list":
        cursor = params.get("cursor", "0")
        if "--loop" in sys.argv:
            return {"tools": TOOLS[:1], "nextCursor": "again"}
        page = int(cursor)
        following = {"nextCursor": str(page + 1)} if page + 1 < len(TOOLS) else {}
        return {"tools": [TOOLS[page]], **following}
    if method == "tools/call":
        return call(params)
    if method == "resources/list":
        return {"resources": [{"name": "r", "uri": "demo://r", "title": "A title"}]}
    if method == "prompts/list":
        return {"prompts": [{"name": "p", "arguments": [{"name": "a", "required": True}, {"name": "b"}]}]}
    raise Refusal(-32601, "Method not found")


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    try:
        reply["result"] = answer(request["method"], request.get("params", {}))
    except Refusal as refusal:
        code, message, *data = refusal.args
        reply["error"] = {"code": code, "message": message, **({"data": data[0]} if data else {})}
    print(json.dumps(reply), flush=True)
