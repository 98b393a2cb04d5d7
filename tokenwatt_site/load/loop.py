"""The event loop that load runs on."""

import asyncio


def new_loop() -> asyncio.AbstractEventLoop:
    """Return a uvloop where it is installed (half the CPU time a token), else asyncio's own.

    >>> with asyncio.Runner(loop_factory=new_loop) as runner:
    ...     runner.run(asyncio.sleep(0, "ran"))
    'ran'
    """
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
