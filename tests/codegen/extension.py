"""An extension of the wire as an engineer would write it: schema files changed, nothing else.

A new revision; a method that begins with it and one added to the newest revision there is; a field, an enum value and
a whole definition that begin with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.codegen import schemas

NEXT = "2027-01-01"
NOW = "2026-07-28"


def text(description: str, **keywords: Any) -> dict[str, Any]:
    return {"description": description, "type": "string", **keywords}


def request(method: str, params: str, since: str) -> dict[str, Any]:
    return {
        "description": f"Request of `{method}`.",
        "type": "object",
        "properties": {
            "jsonrpc": text("The JSON-RPC version, always 2.0.", const="2.0"),
            "id": {"description": "The id the response will carry back.", "$ref": "base.json#/$defs/RequestId"},
            "method": text("The method called.", const=method),
            "params": {"description": "The parameters of the call.", "$ref": f"#/$defs/{params}"},
        },
        "required": ["id", "jsonrpc", "method", "params"],
        "x-since": since,
    }


META = {"description": "Protocol and application metadata.", "$ref": "jsonrpc.json#/$defs/RequestMetaObject"}
RESULT_META = {"description": "Protocol and application metadata.", "$ref": "jsonrpc.json#/$defs/ResultMetaObject"}

WEATHER: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "weather.json",
    "description": "Weather.",
    "$defs": {
        "ForecastRequest": request("weather/forecast", "ForecastRequestParams", NEXT),
        "ForecastRequestParams": {
            "description": "Where and when.",
            "type": "object",
            "properties": {
                "placeName": text("The place."),
                "from": text("The first day."),
                "days": {"description": "How many days.", "type": "integer", "minimum": 1},
                "_meta": META,
            },
            "required": ["placeName", "_meta"],
            "x-since": NEXT,
        },
        "ForecastResult": {
            "description": "What the weather will be.",
            "type": "object",
            "properties": {
                "days": {"description": "A day each.", "type": "array", "items": {"$ref": "#/$defs/Day"}},
                "resultType": text("Kind of the result."),
                "_meta": RESULT_META,
            },
            "required": ["days", "resultType"],
            "x-since": NEXT,
        },
        "Day": {
            "description": "One day.",
            "anyOf": [
                {"$ref": "#/$defs/Wet", "x-when": {"millimetres": True}},
                {"$ref": "#/$defs/Dry"},
            ],
            "x-since": NEXT,
        },
        "Wet": {
            "description": "A day with rain.",
            "type": "object",
            "properties": {"millimetres": {"description": "Rain.", "type": "number"}},
            "required": ["millimetres"],
            "x-since": NEXT,
        },
        "Dry": {
            "description": "A day without.",
            "type": "object",
            "properties": {"hours": {"description": "Hours of sun.", "type": ["integer", "null"]}},
            "x-since": NEXT,
        },
        "NoonRequest": request("weather/noon", "NoonRequestParams", NOW),
        "NoonRequestParams": {
            "description": "Nothing but metadata.",
            "type": "object",
            "properties": {"_meta": META},
            "required": ["_meta"],
            "x-since": NOW,
        },
        "NoonResult": {
            "description": "When noon is.",
            "type": "object",
            "properties": {
                "at": text("The time."),
                "resultType": text("Kind of the result."),
                "_meta": RESULT_META,
            },
            "required": ["at", "resultType"],
            "x-since": NOW,
        },
    },
}


def method(name: str, stem: str, since: str) -> dict[str, Any]:
    return {
        "kind": "request",
        "name": name,
        "description": f"Ask for the {name}.",
        "request": f"weather.json#/$defs/{stem}Request",
        "params": f"weather.json#/$defs/{stem}RequestParams",
        "result": f"weather.json#/$defs/{stem}Result",
        "senders": [{"side": "client", "carrier": "message", "x-since": since}],
    }


def extend(schema: Path) -> None:
    """Make the changes in a copy of the schema folder."""
    (schema / "weather.json").write_text("{}")
    schemas.edit(schema, "weather.json", lambda document: document.update(WEATHER))

    def methods(document: Any) -> None:
        document["methods"]["weather/forecast"] = method("forecast", "Forecast", NEXT)
        document["methods"]["weather/noon"] = method("noon", "Noon", NOW)

    def revisions(document: Any) -> None:
        document["revisions"].append(
            {"name": NEXT, "era": "modern", "batches": False, "unreadableId": "absent"},
        )

    def base(document: Any) -> None:
        level = document["$defs"]["LoggingLevel"]
        old = {key: level[key] for key in ("type", "enum")}
        level["enum"] = [*level["enum"], "trace"]
        level["x-revisions"] = [{"until": NOW, "schema": old}]

    def tools(document: Any) -> None:
        properties = document["$defs"]["Tool"]["properties"]
        properties["costHint"] = {"description": "What a call costs.", "type": "number", "minimum": 0, "x-since": NEXT}

    def messages(document: Any) -> None:
        members = document["$defs"]["ClientRequest"]["anyOf"]
        members.append({"$ref": "weather.json#/$defs/ForecastRequest", "x-since": NEXT})
        members.append({"$ref": "weather.json#/$defs/NoonRequest", "x-since": NOW})

    schemas.edit(schema, "methods.json", methods)
    schemas.edit(schema, "revisions.json", revisions)
    schemas.edit(schema, "base.json", base)
    schemas.edit(schema, "tools.json", tools)
    schemas.edit(schema, "messages.json", messages)
