"""The server of the official SDK, with the tools, resources and prompts of a workspace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

import cleared
from cleared.api.mcp_server import reference_pages
from cleared.api.mcp_server.bounded_answer import to_json_text, wrap_schema
from cleared.api.mcp_server.client_calls import TOOLS, ToolReply, WorkspaceTools
from cleared.api.mcp_server.prompt_texts import INSTRUCTIONS, PROMPTS, fill_prompt
from cleared.gate.operation import Operation

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext

MAX_CALLS: Final = 8
"""Calls that are worked on at once; others wait."""
_T = TypeVar("_T")


def make_server(tools: WorkspaceTools) -> Server[Any]:
    """The server; its transport comes from elsewhere."""
    handlers = _Handlers(tools)
    return Server(
        "cleared",
        version=cleared.__version__,
        title="cleared: books kept by approved agents",
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )


class _Handlers:
    """Each works in a thread of its own: a call that waits for the lock, or runs a script, holds up no other."""

    def __init__(self, tools: WorkspaceTools) -> None:
        self._tools = tools
        self._limiter: anyio.CapacityLimiter | None = None

    async def _run(self, function: Callable[[], _T]) -> _T:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(MAX_CALLS)
        # A client that withdraws its request is not kept waiting. What was begun is one commit or nothing.
        return await anyio.to_thread.run_sync(function, limiter=self._limiter, abandon_on_cancel=True)

    async def _ask(self, question: Callable[[Any], Any]) -> dict[str, Any]:
        return _data_of(await self._run(functools.partial(self._tools.answer, question)))

    async def list_tools(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        names = _data_of(await self._run(self._tools.list_tools))["items"]
        return types.ListToolsResult(tools=[describe_tool(name, TOOLS[name]) for name in names])

    async def call_tool(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        about = context.session.client_params
        client = about.client_info.name if about is not None else ""
        call = functools.partial(self._tools.call_tool, params.name, params.arguments or {}, client)
        reply = await self._run(call)
        if reply.data is None:
            return types.CallToolResult(content=[types.TextContent(type="text", text=reply.text)], is_error=True)
        text = types.TextContent(type="text", text=to_json_text(reply.data))
        return types.CallToolResult(content=[text], structured_content=reply.data)

    async def list_resources(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        data = await self._ask(
            lambda host: [[p.uri, p.name, p.description, p.mime_type] for p in reference_pages.list_pages(host)]
        )
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=uri, name=name, description=about, mime_type=kind)
                for uri, name, about, kind in data["items"]
            ]
        )

    async def list_resource_templates(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=p.uri, name=p.name, description=p.description, mime_type=p.mime_type
                )
                for p in reference_pages.list_templates()
            ]
        )

    async def read_resource(
        self, context: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        return types.ReadResourceResult(contents=[await self._read_page(uri)])

    async def _read_page(self, uri: str) -> types.TextResourceContents:
        page = await self._ask(
            lambda host: dict(zip(("mime", "text"), reference_pages.read_page(host, uri), strict=True))
        )
        return types.TextResourceContents(uri=uri, mime_type=page["mime"], text=page["text"])

    async def list_prompts(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=p.name,
                    description=p.description,
                    arguments=[
                        types.PromptArgument(name=name, description=about, required=True)
                        for name, about in p.arguments.items()
                    ],
                )
                for p in PROMPTS.values()
            ]
        )

    async def get_prompt(
        self, context: ServerRequestContext[Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        given = dict(params.arguments or {})
        filled = await self._ask(
            lambda host: dict(zip(("text", "pages"), fill_prompt(host, params.name, given), strict=True))
        )
        contents: list[Any] = [types.TextContent(type="text", text=filled["text"])]
        for uri in filled["pages"]:
            contents.append(types.EmbeddedResource(type="resource", resource=await self._read_page(uri)))
        return types.GetPromptResult(
            description=PROMPTS[params.name].description,
            messages=[types.PromptMessage(role="user", content=content) for content in contents],
        )


def _data_of(reply: ToolReply) -> dict[str, Any]:
    """The answer. Raises ``MCPError`` for a refusal."""
    if reply.data is None:
        raise MCPError(types.INVALID_PARAMS, reply.text)
    return reply.data


def describe_tool(name: str, operation: Operation) -> types.Tool:
    """A tool as ``tools/list`` shows it."""
    reads, runs = operation.effect in ("read", "check"), operation.effect == "run"
    return types.Tool(
        name=name,
        description=operation.doc,
        input_schema=operation.parameters_schema,
        output_schema=wrap_schema(dict(operation.result)),
        annotations=types.ToolAnnotations(
            title=operation.name,
            read_only_hint=reads,
            destructive_hint=runs,
            idempotent_hint=not runs,
            open_world_hint=runs,
        ),
    )
