"""File descriptors: one a connection, raised as far as the machine allows."""

import resource

from tokenwatt_site.errors import UsageError

_SPARE = 256  # the program's own files, meters, listeners


def raise_descriptors(max_concurrency: int) -> int:
    """Raise this process's limit of open files to the hard limit, and return it.

    Raises:
        UsageError: the hard limit is below ``max_concurrency`` + 256.
    """
    needed = max_concurrency + _SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise UsageError(
            f"measurement.max_concurrency {max_concurrency} needs {needed} open files, "
            f"and this shell allows {hard}",
            f"lower it to {max(1, hard - _SPARE)}, or raise the limit as root: "
            f"prlimit --pid $$ --nofile={needed}:{needed}",
        )
    if hard != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard
    limit = max(soft, needed) if soft != resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return limit
