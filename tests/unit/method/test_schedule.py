import itertools
import math
from dataclasses import replace

from tokenwatt_site.method.rng import derive_seed
from tokenwatt_site.method.schedule import Schedule, poisson_schedule
from tokenwatt_site.method.workloads import WORKLOADS, Fixed, Workload

CHAT = WORKLOADS["chat-mix-v1"]
PLAIN = Workload("custom", Fixed(10), Fixed(20))


def gaps(schedule: Schedule) -> list[float]:
    times = [0.0, *schedule.arrival_s]
    return [b - a for a, b in itertools.pairwise(times)]


def test_a_schedule_is_pinned() -> None:
    schedule = poisson_schedule(CHAT, 5.0, 100.0, derive_seed(0, "schedule", 0))
    assert len(schedule) == 481
    assert list(schedule.arrival_s[:3]) == [0.126687, 0.138063, 0.377464]
    assert list(schedule.input_tokens[:3]) == [85, 8192, 1304]
    assert list(schedule.output_tokens[:3]) == [138, 160, 264]
    assert schedule.digest() == "f74af4ed037c748c62b43cb8702aa0c278aca92402a0f7f4e5077c4a61c054e1"


def test_the_digest_covers_everything_that_is_sent() -> None:
    one = poisson_schedule(PLAIN, 5.0, 20.0, 1)
    others = [
        poisson_schedule(PLAIN, 5.0, 20.0, 2),
        poisson_schedule(PLAIN, 5.1, 20.0, 1),
        poisson_schedule(PLAIN, 5.0, 21.0, 1),
        poisson_schedule(Workload("custom", Fixed(11), Fixed(20)), 5.0, 20.0, 1),
        poisson_schedule(Workload("custom", Fixed(10), Fixed(21)), 5.0, 20.0, 1),
    ]
    assert len({one.digest(), *(other.digest() for other in others)}) == 6
    assert poisson_schedule(PLAIN, 5.0, 20.0, 1).digest() == one.digest()


def test_gaps_are_exponential() -> None:
    """Kolmogorov and Smirnov: the distance to the exponential law stays under its 1 % limit."""
    values = sorted(gaps(poisson_schedule(PLAIN, 50.0, 200.0, 3)))
    n = len(values)
    far = max(abs(1 - math.exp(-50.0 * gap) - (i + 0.5) / n) for i, gap in enumerate(values))
    assert far + 0.5 / n < 1.63 / math.sqrt(n)


def test_counts_are_as_spread_as_poisson_counts() -> None:
    """The variance of arrivals a second over their mean is 1; a rescaled stream's is smaller."""
    schedule = poisson_schedule(PLAIN, 20.0, 2000.0, 4)
    seconds = [0] * 2000
    for arrival in schedule.arrival_s:
        seconds[int(arrival)] += 1
    mean = len(schedule) / 2000
    variance = sum((c - mean) ** 2 for c in seconds) / 1999
    assert abs(variance / mean - 1) < 4 * math.sqrt(2 / 1999)


def test_the_number_of_arrivals_is_left_to_chance() -> None:
    counts = {len(poisson_schedule(PLAIN, 10.0, 10.0, seed)) for seed in range(20)}
    assert len(counts) > 5


def test_no_arrivals_in_no_time() -> None:
    assert len(poisson_schedule(PLAIN, 10.0, 0.0, 1)) == 0


def test_what_is_injected_is_part_of_the_digest() -> None:
    plain = poisson_schedule(PLAIN, 5.0, 20.0, 1)
    assert replace(plain, injected=2).digest() != plain.digest()
