"""The everything server the official conformance suite drives: ``python tests/conformance/server.py --port 8000``.

One endpoint, ``/mcp``, serves every revision as requests come.  Names, texts and data are the suite's.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
from typing import Annotated, Any

import msgspec

from typedmcp import App, Context, ToolError, types

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = base64.b64encode(
    b"RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00"
    b"data\x02\x00\x00\x00\x00\x00"
).decode()

app = App("everything", "1.0.0", instructions="Drives the official conformance suite.")


# -- tools -------------------------------------------------------------------------------------------------------------


@app.tool
async def test_simple_text() -> types.TextContent:
    """Return a text."""
    return types.TextContent(text="This is a simple text response for testing.")


@app.tool
async def test_image_content() -> types.ImageContent:
    """Return an image."""
    return types.ImageContent(data=PNG, mime_type="image/png")


@app.tool
async def test_audio_content() -> types.AudioContent:
    """Return audio."""
    return types.AudioContent(data=WAV, mime_type="audio/wav")


def embedded(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=text))


@app.tool
async def test_embedded_resource() -> types.EmbeddedResource:
    """Return a resource inside the result."""
    return embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")


@app.tool
async def test_multiple_content_types() -> list[types.ContentBlock]:
    """Return text, an image and a resource."""
    data = json.dumps({"test": "data", "value": 123})
    return [
        types.TextContent(text="Multiple content types test:"),
        types.ImageContent(data=PNG, mime_type="image/png"),
        embedded("test://mixed-content-resource", "application/json", data),
    ]


@app.tool
async def test_error_handling() -> str:
    """Fail on purpose."""
    raise ToolError("This tool intentionally returns an error for testing")


@app.tool
async def test_tool_with_progress(context: Context) -> str:
    """Report progress three times."""
    for progress in (0, 50, 100):
        context.report_progress(progress, 100, f"Completed step {progress} of 100")
        await asyncio.sleep(0.05)
    return "Progress is complete"


@app.tool
async def test_tool_with_logging(context: Context) -> str:
    """Send three log messages."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        context.log("info", text)
        await asyncio.sleep(0.05)
    return "Logging is complete"


@app.tool
async def test_logging_tool(context: Context) -> str:
    """Log at info where the request asks for it."""
    context.log("info", "test_logging_tool ran")
    return "Logged where asked"


@app.tool
async def test_reconnection(context: Context) -> str:
    """Close the stream in the middle of the call."""
    await context.close_stream(0.1)
    await asyncio.sleep(0.2)
    return "The rest came after a new connection"


@app.tool
async def test_sampling(prompt: str, context: Context) -> str:
    """Ask the client's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    result = await context.sample([message], max_tokens=100)
    return f"LLM response: {getattr(result.content, 'text', '')}"


@app.tool
async def test_elicitation(message: str, context: Context) -> str:
    """Ask the user for a name and an address."""
    schema = {
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's name"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    }
    answer = await context.elicit(message, schema)
    return f"User response: action={answer.action}, content={json.dumps(answer.content)}"


@app.tool
async def test_elicitation_sep1034_defaults(context: Context) -> str:
    """Ask with defaults of every kind."""
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        },
        "required": [],
    }
    answer = await context.elicit("Please review your settings", schema)
    return f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}"


def titled(names: list[str], titles: list[str]) -> list[dict[str, str]]:
    return [{"const": name, "title": title} for name, title in zip(names, titles, strict=True)]


@app.tool
async def test_elicitation_sep1330_enums(context: Context) -> str:
    """Ask with choices of every kind."""
    options, values, opts = ([f"{stem}{number}" for number in (1, 2, 3)] for stem in ("option", "value", "opt"))
    labels = ["First Option", "Second Option", "Third Option"]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled(values, labels)},
            "legacyEnum": {"type": "string", "enum": opts, "enumNames": labels},
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled(values, labels)}},
        },
        "required": [],
    }
    answer = await context.elicit("Please choose", schema)
    return f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}"


JSON_SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


async def json_schema_2020_12_tool(arguments: dict[str, Any]) -> str:
    """Take arguments described by many keywords."""
    return json.dumps(arguments)


app.tool(json_schema_2020_12_tool, input_schema=JSON_SCHEMA_2020_12)


# -- input-required results of 2026-07-28 ------------------------------------------------------------------------------


def form(message: str, **properties: str) -> types.ElicitRequest:
    """A form with required fields, as a question of an input-required result."""
    kinds: dict[str, Any] = {"string": types.StringSchema, "boolean": types.BooleanSchema}
    fields = {name: kinds[kind]() for name, kind in properties.items()}
    schema = types.ElicitRequestedSchema(properties=fields, required=list(fields))
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(text: str) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=text))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=100))


def required(state: str | None = None, **questions: Any) -> types.InputRequiredResult:
    return types.InputRequiredResult(result_type="input_required", input_requests=questions, request_state=state)


def entered(context: Context, key: str) -> dict[str, Any] | None:
    """What the user entered, when it is an answer to a form at all."""
    answer = context.input_responses.get(key)
    return answer.content or {} if isinstance(answer, types.ElicitResult) else None


@app.tool
async def test_input_required_result_elicitation(context: Context) -> Any:
    """Ask for a name."""
    answer = entered(context, "user_name")
    if answer is None:
        return required(user_name=form("What is your name?", name="string"))
    return f"Hello, {answer['name']}!"


@app.tool
async def test_input_required_result_sampling(context: Context) -> str:
    """Ask the client's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text="What is the capital of France?"))
    result = await context.sample([message], max_tokens=100)
    return f"The model says: {getattr(result.content, 'text', '')}"


@app.tool
async def test_input_required_result_list_roots(context: Context) -> str:
    """Ask for the client's roots."""
    return f"Roots: {', '.join(root.uri for root in await context.list_roots())}"


@app.tool
async def test_input_required_result_request_state(context: Context) -> Any:
    """Ask, and check that the state has come back."""
    if context.request_state != "asked" or entered(context, "confirm") is None:
        return required("asked", confirm=form("Is it all right?", ok="boolean"))
    return "state-ok"


@app.tool
async def test_input_required_result_tampered_state(context: Context) -> Any:
    """Ask with a state that must not be changed."""
    if context.request_state != "asked" or entered(context, "confirm") is None:
        return required("asked", confirm=form("Is it all right?", ok="boolean"))
    return "state-ok"


@app.tool
async def test_input_required_result_multiple_inputs(context: Context) -> str:
    """Ask for three things at once."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text="Say hello."))
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    name, greeting, roots = await asyncio.gather(
        context.elicit("What is your name?", schema), context.sample([message], max_tokens=50), context.list_roots()
    )
    return f"{name.content}, {getattr(greeting.content, 'text', '')}, {len(roots)} roots"


@app.tool
async def test_input_required_result_multi_round(context: Context) -> Any:
    """Ask twice, one question after the other."""
    if context.request_state is None or (context.request_state == "1" and entered(context, "step1") is None):
        return required("1", step1=form("What is your name?", name="string"))
    if context.request_state == "1":
        return required("2", step2=form("What is your favourite colour?", color="string"))
    if entered(context, "step2") is None:
        return required("2", step2=form("What is your favourite colour?", color="string"))
    return "Both rounds are complete"


@app.tool
async def test_input_required_result_capabilities(context: Context) -> Any:
    """Ask only what the client can answer."""
    declared = context.client_capabilities
    questions: dict[str, Any] = {}
    if declared.sampling is not None:
        questions["sample"] = sampling("Say hello.")
    if declared.elicitation is not None:
        questions["name"] = form("What is your name?", name="string")
    if not questions or questions.keys() <= context.input_responses.keys():
        return "Everything is answered"
    return required(**questions)


@app.prompt
async def test_input_required_result_prompt(context: Context) -> Any:
    """Ask before the prompt is made."""
    answer = entered(context, "context")
    if answer is None:
        return required(context=form("What is it about?", context="string"))
    return f"Use this context: {answer['context']}"


@app.tool
async def test_missing_capability(context: Context) -> str:
    """Need a capability the client may not have."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text="Say hello."))
    return str(await context.sample([message], max_tokens=10))


@app.tool
async def test_streaming_elicitation(context: Context) -> Any:
    """Ask on the way."""
    if entered(context, "name") is None:
        return required(name=form("What is your name?", name="string"))
    return "Asked and answered"


# -- a parameter with a header of its own ------------------------------------------------------------------------------


@app.tool
async def test_x_mcp_header(
    region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})],
) -> str:
    """Say which region was asked for."""
    return region


# -- changes: what a tool adds, the next call of it takes out ----------------------------------------------------------


async def passing() -> str:
    """Is there now and then."""
    return "Here."


@app.tool
async def test_trigger_tool_change() -> str:
    """Change the list of tools."""
    if not app.remove_tool("passing_tool"):
        app.tool(passing, name="passing_tool")
    return "The list of tools has changed."


@app.tool
async def test_trigger_prompt_change() -> str:
    """Change the list of prompts."""
    if not app.remove_prompt("passing_prompt"):
        app.prompt(passing, name="passing_prompt")
    return "The list of prompts has changed."


# -- resources, prompts, completion ------------------------------------------------------------------------------------


@app.resource("test://static-text", mime_type="text/plain")
async def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


@app.resource("test://static-binary", mime_type="image/png")
async def static_binary() -> bytes:
    """An image that never changes."""
    return base64.b64decode(PNG)


@app.resource("test://watched-resource", mime_type="text/plain")
async def watched_resource() -> str:
    """A resource to subscribe to."""
    return "Watched resource content"


@app.resource("test://template/{id}/data", mime_type="application/json")
async def template_data(id: str) -> str:  # noqa: A002 - the suite's name
    """Data by id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@app.prompt
async def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


async def suggest(value: str) -> list[str]:
    return [word for word in ("test-one", "test-two", "other") if word.startswith(value)]


@app.prompt(complete={"arg1": suggest})
async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments.

    Args:
        arg1: The first one.
        arg2: The second one.
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def user(content: types.ContentBlock) -> types.PromptMessage:
    return types.PromptMessage(role="user", content=content)


@app.prompt
async def test_prompt_with_embedded_resource(resourceUri: str) -> list[types.PromptMessage]:  # noqa: N803
    """A prompt with a resource inside."""
    return [
        user(embedded(resourceUri, "text/plain", "Embedded resource content for testing.")),
        user(types.TextContent(text="Please process the embedded resource above.")),
    ]


@app.prompt
async def test_prompt_with_image() -> list[types.PromptMessage]:
    """A prompt with an image."""
    return [
        user(types.ImageContent(data=PNG, mime_type="image/png")),
        user(types.TextContent(text="Please analyze the image above.")),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    app.run("http", port=parser.parse_args().port)


if __name__ == "__main__":
    main()
