"""A server of known truth for the self-test: a process of its own that streams at exact times.

    python -m tokenwatt_site.load.stub [PORT]

prints ``{"port": …}`` once it listens on 127.0.0.1, and streams to each request as many tokens as
it asks for, the first after 50 ms and one every 20 ms. When its standard input ends it prints the
truth: when it sent the first token of which request, on the machine's monotonic clock. Several may
share a port. Nothing is imported that would make it slow to start or slower than a client.
"""

import json
import resource
import selectors
import socket
import sys
import time
from collections import deque

TTFT_S = 0.05
ITL_S = 0.02
_BACKLOG = 4096
_A_TURN = 128  # tokens sent before requests are read again
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_FRAME = (
    'data: {"id":"cmpl-0123456789abcdef0123456789abcdef","object":"text_completion",'
    '"created":1796000000,"model":"stub","choices":[%s]%s}\n\n'
)
_CHOICE = '{"index":0,"text":" token","logprobs":null,"finish_reason":%s,"stop_reason":null}'


def _chunk(*events: str) -> bytes:
    text = "".join(events).encode()
    return b"%x\r\n%b\r\n" % (len(text), text)


_TOKEN = _chunk(_FRAME % (_CHOICE % "null", ',"usage":null'))


def _last(tokens: int) -> bytes:
    usage = f',"usage":{{"prompt_tokens":1,"completion_tokens":{tokens}}}'
    token = _FRAME % (_CHOICE % '"length"', ',"usage":null')
    return _chunk(token, _FRAME % ("", usage), "data: [DONE]\n\n") + b"0\r\n\r\n"


class _Client:
    """A connection, and the answer that it is given."""

    __slots__ = ("data", "due_s", "left", "number", "sock", "tokens")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.data = b""
        self.number = self.tokens = self.left = 0
        self.due_s = 0.0

    def asked(self) -> bool:
        """Take the next request from what has been read; tell whether there is a whole one."""
        head, found, rest = self.data.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r", 1)[0] or 0)
        if not found or len(rest) < size:
            return False
        body, self.data = json.loads(rest[:size]), rest[size:]
        self.number, self.tokens = body["prompt"][0], body["max_tokens"]
        self.left = self.tokens
        return True


class Stub:
    """One thread, one selector, two queues: all firsts wait equally long, and so do all others."""

    def __init__(self, port: int) -> None:
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen(_BACKLOG)
        self._listener.setblocking(False)  # noqa: FBT003 - the socket's own method
        self.port: int = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        self._firsts: deque[_Client] = deque()
        self._nexts: deque[_Client] = deque()
        self.first_s: dict[int, float] = {}
        self.late_s: list[float] = []

    def run(self) -> None:
        """Serve until standard input ends."""
        while self._take_in(self._send_due()):
            pass

    def _send_due(self) -> float:
        """Send what is due; return how long nothing will be."""
        for _ in range(_A_TURN):
            queue = self._firsts
            if not queue or (self._nexts and self._nexts[0].due_s < queue[0].due_s):
                queue = self._nexts
            if not queue:
                return 1.0
            now_s = time.monotonic()
            if queue[0].due_s > now_s:
                return queue[0].due_s - now_s
            self._send(queue.popleft(), now_s)
        return 0.0

    def _send(self, client: _Client, now_s: float) -> None:
        data = _TOKEN if client.left > 1 else _last(client.tokens)
        if client.left == client.tokens:
            data = _HEAD + data
            self.first_s[client.number] = now_s
            self.late_s.append(now_s - client.due_s)
        try:
            sent = client.sock.send(data)
        except OSError:  # the client hung up, or has fallen behind by megabytes
            sent = 0
        if sent < len(data):
            self._drop(client)
            return
        client.left -= 1
        if client.left:
            client.due_s += ITL_S
            self._nexts.append(client)

    def _take_in(self, wait_s: float) -> bool:
        """Read requests for so long; tell whether to go on."""
        for key, _ in self._selector.select(wait_s):
            if key.fileobj is sys.stdin:
                return False
            if key.fileobj is self._listener:
                self._accept()
            else:
                self._read(key.data)
        return True

    def _accept(self) -> None:
        sock, _ = self._listener.accept()
        sock.setblocking(False)  # noqa: FBT003 - the socket's own method
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(sock, selectors.EVENT_READ, _Client(sock))

    def _read(self, client: _Client) -> None:
        try:
            data = client.sock.recv(65536)
        except OSError:
            data = b""
        if not data:
            self._drop(client)
            return
        client.data += data
        if client.left == 0 and client.asked():
            client.due_s = time.monotonic() + TTFT_S
            self._firsts.append(client)

    def _drop(self, client: _Client) -> None:
        if client.sock.fileno() >= 0:
            self._selector.unregister(client.sock)
            client.sock.close()


def main() -> int:
    """Serve, then tell the truth; return the exit code."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, hard), hard))
    stub = Stub(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    print(json.dumps({"port": stub.port}), flush=True)  # noqa: T201 - its parent reads it
    stub.run()
    late_s = sorted(stub.late_s)
    worst_s = late_s[min(int(0.99 * len(late_s)), len(late_s) - 1)] if late_s else 0.0
    print(json.dumps({"first_s": stub.first_s, "late_p99_s": worst_s}))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
