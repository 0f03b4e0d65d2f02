"""verifiers' harness for agents without tools: each turn is one request from this process."""

from functools import cache
from typing import Any

from dialgym.optional import require

EXTRA, PURPOSE = "verifiers", "an environment of verifiers"


def in_process(vf: Any) -> Any:
    """The class of harnesses that ask the model from this process, once for each turn."""

    class InProcess(vf.Harness[vf.HarnessConfig]):  # type: ignore[name-defined, misc]
        APPENDS_SYSTEM_PROMPT = SUPPORTS_RESUME = True
        EXECUTES_CODE = NEEDS_CONTAINER = False

        async def launch(
            self,
            ctx: Any,
            trace: Any,
            runtime: Any,
            endpoint: str,
            secret: str,
            mcp_urls: Any,
            data: Any,
        ) -> Any:
            brief, prompt = self.resolve_prompt(data)
            system = [] if brief is None else [vf.SystemMessage(content=brief)]
            said = [vf.UserMessage(content=prompt)] if isinstance(prompt, str) else prompt
            body = {"model": ctx.model, "messages": [*map(as_wire, [*system, *said])]}
            failure = await asked(f"{endpoint}/chat/completions", secret, body)
            return vf.ProgramResult(int(bool(failure)), "", failure)

    return InProcess


async def asked(url: str, secret: str, body: Any) -> str:
    """Let a service answer a chat, which is recorded there; what went wrong, else ""."""
    httpx = require("httpx", EXTRA, PURPOSE)
    async with httpx.AsyncClient(timeout=None, verify=certificates()) as client:
        answer = await client.post(url, json=body, headers={"Authorization": f"Bearer {secret}"})
    return "" if answer.is_success else f"{answer.status_code}: {answer.text}"


@cache
def certificates() -> Any:
    """Certificates that a service is held to; to read them takes longer than a turn."""
    return require("httpx", EXTRA, PURPOSE).create_ssl_context()


def as_wire(message: Any) -> dict[str, Any]:
    """Role and content of one of verifiers' messages."""
    parts = message.content or ""
    content = parts if isinstance(parts, str) else [part.model_dump() for part in parts]
    return {"role": message.role, "content": content}
