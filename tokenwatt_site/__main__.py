"""``python -m tokenwatt_site`` and the console scripts: the same program.

Nothing is loaded before the guard stands, so that Ctrl-C while the program loads is no traceback.
"""

import sys


def main() -> None:
    """Load the program and run it."""
    try:
        from tokenwatt_site.cli import main as program  # noqa: PLC0415 - inside the guard

        program()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
