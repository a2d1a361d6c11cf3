"""A servicer that offers everything, and what it offers in every dress a revision may have."""

from __future__ import annotations

from typing import Any

from typedmcp import Context, types
from typedmcp_wire.servicer import Servicer

ICONS = [types.Icon(src="https://example.com/i.png", mime_type="image/png")]
AUDIO = types.AudioContent(data="AAAA", mime_type="audio/wav")
LINK = types.ResourceLink(uri="docs://a", name="a", title="The A", description="About A")
IMAGE = types.ImageContent(data="AAAA", mime_type="image/png")
EMBEDDED = types.EmbeddedResource(resource=types.TextResourceContents(uri="docs://e", text="embedded"))
TEXT = types.TextContent(
    text="words", annotations=types.Annotations(priority=0.5, last_modified="2025-01-01T00:00:00Z")
)
TOOL = types.Tool(
    name="everything",
    title="Everything",
    description="All of it",
    input_schema={"type": "object"},
    output_schema={"type": "array", "items": {"type": "integer"}},
    icons=ICONS,
    annotations=types.ToolAnnotations(read_only_hint=True),
    meta={"com.example/x": 1},
)
PROMPT = types.Prompt(
    name="p", title="P", icons=ICONS, arguments=[types.PromptArgument(name="a", title="A", required=True)]
)
RESOURCE = types.Resource(uri="docs://a", name="a", title="A", icons=ICONS)
TEMPLATE = types.ResourceTemplate(uri_template="docs://{x}", name="t", title="T", icons=ICONS)


class Everything(Servicer[Context]):
    """Its tool's result is what it was made with."""

    def __init__(self, result: Any = None) -> None:
        self.result = result

    async def list_tools(self, params: Any, context: Context) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[TOOL])

    async def call_tool(self, params: Any, context: Context) -> Any:
        return self.result

    async def list_prompts(self, params: Any, context: Context) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[PROMPT])

    async def get_prompt(self, params: Any, context: Context) -> Any:
        blocks = (TEXT, AUDIO, LINK, IMAGE, EMBEDDED)
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=block) for block in blocks])

    async def list_resources(self, params: Any, context: Context) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[RESOURCE])

    async def list_resource_templates(self, params: Any, context: Context) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[TEMPLATE])

    async def read_resource(self, params: Any, context: Context) -> Any:
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="t")])

    async def subscribe_resource(self, params: Any, context: Context) -> Any:
        return {}

    async def unsubscribe_resource(self, params: Any, context: Context) -> Any:
        return {}

    async def complete(self, params: Any, context: Context) -> types.CompleteResult:
        return types.CompleteResult(completion=types.Completion(values=["a"]))

    async def set_logging_level(self, params: Any, context: Context) -> Any:
        return {}
