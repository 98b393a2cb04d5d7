"""What an answer looks like on the wire, in the form of OpenAI's API."""

import json
from typing import Any

from tokenwatt_site.simulator.job import MODEL, BadRequestError, Job

DONE = b"data: [DONE]\n\n"


class Answer:
    """The chunks or the document of one answer. Token ``n`` is the text " t<n>"."""

    def __init__(self, job: Job, key: int, created: int) -> None:
        """Prepare what all chunks share.

        Args:
            job: what was asked for.
            key: number of the request.
            created: Unix time, a label.
        """
        self._job = job
        kind = "chat.completion" if job.chat else "text_completion"
        self._frame = {
            "id": f"{'chatcmpl' if job.chat else 'cmpl'}-{key:016x}",
            "object": f"{kind}.chunk" if job.chat and job.stream else kind,
            "created": created,
            "model": MODEL,
        }
        self._open = json.dumps(self._frame, separators=(",", ":"))[:-1]

    def head(self) -> bytes:
        """Return what a stream begins with, before any token."""
        if not self._job.chat:
            return b""
        return self._event('"delta":{"role":"assistant","content":""}', "null", 0)

    def token(self, n: int, *, last: bool) -> bytes:
        """Return the chunk of token ``n``; after the last one, how the stream ends."""
        body = f'"delta":{{"content":" t{n}"}}' if self._job.chat else f'"text":" t{n}"'
        chunk = self._event(body, '"length"' if last else "null", n)
        if not last:
            return chunk
        if self._job.usage:
            usage = json.dumps(self._usage(n), separators=(",", ":"))
            chunk += f'data: {self._open},"choices":[],"usage":{usage}}}\n\n'.encode()
        return chunk + DONE

    def document(self, n: int) -> bytes:
        """Return the whole answer of ``n`` tokens, for a request that doesn't stream."""
        text = "".join(f" t{k}" for k in range(1, n + 1))
        choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": "length"}
        if self._job.chat:
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
        return json.dumps({**self._frame, "choices": [choice], "usage": self._usage(n)}).encode()

    def _event(self, body: str, finish: str, n: int) -> bytes:
        usage = ""
        if self._job.continuous_usage:
            usage = f',"usage":{json.dumps(self._usage(n), separators=(",", ":"))}'
        return (
            f'data: {self._open},"choices":[{{"index":0,{body},"logprobs":null,'
            f'"finish_reason":{finish}}}]{usage}}}\n\n'
        ).encode()

    def _usage(self, n: int) -> dict[str, int]:
        prompt_tokens = self._job.prompt_tokens
        return {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": n,
            "total_tokens": prompt_tokens + n,
        }


def error_body(refused: BadRequestError) -> bytes:
    """Return an error in the form of OpenAI's API."""
    kinds = {401: "AuthenticationError", 404: "NotFoundError"}
    error = {
        "message": refused.what,
        "type": kinds.get(refused.status, "BadRequestError"),
        "param": refused.param,
        "code": refused.status,
    }
    return json.dumps({"error": error}).encode()
