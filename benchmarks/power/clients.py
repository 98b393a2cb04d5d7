"""One client reading eight GPUs of the stub ten times a second, in a process of its own.

``python clients.py NAME SECONDS``, with the interpreter of the client's environment. It prints how
many readings of a GPU it took (Zeus: of new values). Each imports what it needs alone.
"""

import sys
import threading
import time

GPUS, HZ = 8, 10.0


def ready() -> None:
    """Tell that starting is over: what it cost isn't counted."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()


def ours(seconds: float) -> int:
    """Everything that a window needs: power, counter, throttling, limit, clock, temperature."""
    from tokenwatt_site.documents.spec import SpecPower  # noqa: PLC0415
    from tokenwatt_site.power import open_meter  # noqa: PLC0415
    from tokenwatt_site.power.sampler import Sampler  # noqa: PLC0415

    power = SpecPower(source="board")
    meter = open_meter(power, gpus=None, count=GPUS, simulator_url=None)
    sampler = Sampler(meter, HZ)
    sampler.start()
    ready()
    time.sleep(seconds)
    samples = sampler.stop()
    meter.close()
    if any(sample.error for sample in samples):
        raise RuntimeError("a reading failed")
    return len(samples)


def pynvml(seconds: float) -> int:
    """A bare loop of the library's own Python package: power and counter alone."""
    import pynvml as lib  # noqa: PLC0415

    lib.nvmlInit()
    handles = [lib.nvmlDeviceGetHandleByIndex(index) for index in range(GPUS)]
    read: list[tuple[float, int, int]] = []
    ready()
    start_s, stop = time.monotonic(), threading.Event()
    for k in range(round(seconds * HZ)):
        stop.wait(max(0.0, start_s + k / HZ - time.monotonic()))
        for handle in handles:
            energy_mj = lib.nvmlDeviceGetTotalEnergyConsumption(handle)
            read.append((time.monotonic(), lib.nvmlDeviceGetPowerUsage(handle), energy_mj))
    return len(read)


def zeus(seconds: float) -> int:
    """Zeus' PowerMonitor: a process for each of instant, average and memory power."""
    from zeus.monitor.power import PowerDomain, PowerMonitor  # noqa: PLC0415

    monitor = PowerMonitor(gpu_indices=list(range(GPUS)), update_period=1 / HZ)
    ready()
    time.sleep(seconds)
    timeline = monitor.get_power_timeline(PowerDomain.DEVICE_INSTANT)
    monitor.stop()
    return sum(len(readings) for readings in timeline.values())


if __name__ == "__main__":
    client = {"ours": ours, "pynvml": pynvml, "zeus": zeus}[sys.argv[1]]
    sys.stdout.write(f"{client(float(sys.argv[2]))}\n")
