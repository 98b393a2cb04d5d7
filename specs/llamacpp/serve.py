"""Start llama.cpp's own server on 127.0.0.1, with a tiny random model or with any GGUF file.

    python -m pip install 'tokenwatt-site[llamacpp]'
    python specs/llamacpp/serve.py                           # the tiny model, on port 8080
    python specs/llamacpp/serve.py --gguf model.gguf --slots 4 --ctx 8192

When it answers, one JSON line says where: {"url": "http://127.0.0.1:8080/v1", "model": "…"}.
SIGTERM or Ctrl-C ends it. The server's own log goes to stderr. With a command after `--`, that
runs as soon as the server answers, and the server ends with it:

    python specs/llamacpp/serve.py -- tokenwatt-site measure specs/llamacpp.spec.yaml
"""

import argparse
import hashlib
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

try:
    import tiny_model
    import xllamacpp
except ImportError as error:
    sys.exit(f"{error}\n  next: python -m pip install 'tokenwatt-site[llamacpp]'")

CACHE = Path(".cache/llamacpp")
QUIET = 1  # errors only; 3 is llama.cpp's own default and logs every request


def cached_tiny_model() -> Path:
    """Return the tiny model's file; made anew whenever the program that makes it has changed."""
    recipe = Path(tiny_model.__file__).read_bytes()
    path = CACHE / f"{tiny_model.NAME}-{hashlib.sha256(recipe).hexdigest()[:12]}.gguf"
    if not path.exists():
        tiny_model.write(path)
    return path


def parameters(options: argparse.Namespace) -> xllamacpp.CommonParams:
    """Return what the server is started with: one model, its metrics, no memory of prompts."""
    params = xllamacpp.CommonParams()
    params.model.path = str(options.gguf or cached_tiny_model())
    params.model_alias = {options.gguf.stem if options.gguf else tiny_model.NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = options.port
    params.n_parallel = options.slots
    params.n_ctx = options.ctx
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    # Nothing of an earlier prompt is used again: each request pays for its own.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.ui = False
    params.verbosity = options.verbosity
    return params


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--gguf", type=Path, help="model file; without it the tiny random model is made and used")
    add(
        "--port", type=int, default=8080, help="port on 127.0.0.1, 0 for any free one (%(default)s)"
    )
    add("--slots", type=int, default=32, help="requests served at once (%(default)s)")
    add("--ctx", type=int, default=65_536, help="tokens of context, shared out (%(default)s)")
    add("--threads", type=int, default=1, help="compute threads; leave a core free (%(default)s)")
    add("--verbosity", type=int, default=QUIET, help="of llama.cpp's log, 0 to 4 (%(default)s)")
    add("command", nargs="*", help="after --: run this while serving, then stop")
    options = parser.parse_args()
    if options.gguf and not options.gguf.is_file():
        parser.error(f"{options.gguf} is no file; give the path of a GGUF file")
    if options.command and not shutil.which(options.command[0]):
        parser.error(f"there is no program {options.command[0]}")
    return options


def run(command: list[str]) -> int:
    """Run a command and return its exit code; what stops this program is for the command."""
    with subprocess.Popen(command) as process:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        return process.wait()


def main() -> None:
    """Serve until told to stop, or until the command has ended; exit as that did."""
    options = arguments()
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # before the server's threads exist
    params = parameters(options)
    try:
        server = xllamacpp.Server(params)  # returns when the model is loaded and the port answers
    except RuntimeError:
        sys.exit(
            "llama.cpp didn't start; its reason is in the lines above"
            "\n  next: another --port if it is taken, another --gguf if the file can't be read"
        )
    (model,) = params.model_alias
    print(json.dumps({"url": f"{server.listening_address}/v1", "model": model}), flush=True)
    if not options.command:
        signal.sigwait(ends)
        sys.exit(0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)
    sys.exit(run(options.command))


if __name__ == "__main__":
    main()
