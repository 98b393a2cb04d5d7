"""A management controller on pyghmi, in a process of its own (it warns of deprecations)."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PASSWORD = "right"  # noqa: S105 - of a stub


def serve(port: int, watts: int) -> None:
    import struct  # noqa: PLC0415

    from pyghmi.ipmi.bmc import Bmc  # type: ignore[import-untyped]  # noqa: PLC0415

    class Node(Bmc):  # type: ignore[misc]
        def handle_raw_request(self, request: dict[str, object], session: object) -> None:
            if (request["netfn"], request["command"]) == (0x2C, 2) and watts >= 0:
                words = struct.pack("<4H2IB", watts, 1180, 6021, 4977, 0, 60_000, 0x40)
                session.send_ipmi_response(data=[0xDC, *words])  # type: ignore[attr-defined]
            else:
                super().handle_raw_request(request, session)

    node = Node({"reader": PASSWORD}, port=port, address="127.0.0.1")
    sys.stdout.write("up\n")
    sys.stdout.flush()
    node.listen()


@contextmanager
def bmc(watts: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run one that reads so many watts; negative: it knows no DCMI. Yields host:port, process."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [sys.executable, "-W", "ignore", str(Path(__file__)), str(port), str(watts)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            yield f"127.0.0.1:{port}", process
        finally:
            process.kill()


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
