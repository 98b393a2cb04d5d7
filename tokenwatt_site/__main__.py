"""``python -m tokenwatt_site`` is the same program as the console script."""

from tokenwatt_site.cli import main

if __name__ == "__main__":
    main()
