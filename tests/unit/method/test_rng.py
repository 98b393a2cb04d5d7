from tokenwatt_site.method.rng import derive_seed, open_unit, rng


def test_a_stream_is_the_same_on_every_machine_and_version() -> None:
    assert derive_seed(0, "schedule", 3) == 4630167604453170161
    assert rng(0, "schedule").getrandbits(16) == 5059


def test_seed_purpose_and_index_each_make_another_stream() -> None:
    seeds = {
        derive_seed(s, p, i) for s in (0, 1, 12) for p in ("schedule", "prompts") for i in range(9)
    }
    assert len(seeds) == 3 * 2 * 9


def test_seed_and_index_are_kept_apart() -> None:
    assert derive_seed(1, "a", 23) != derive_seed(12, "a", 3)


def test_a_seed_may_be_negative_or_of_any_size() -> None:
    assert 0 <= derive_seed(-1, "schedule") < 2**64
    assert derive_seed(10**400, "schedule") != derive_seed(10**400 + 1, "schedule")


def test_the_open_interval_leaves_its_ends_out() -> None:
    class Ends:
        def __init__(self, bits: int) -> None:
            self.bits = bits

        def getrandbits(self, width: int) -> int:
            return self.bits & (2**width - 1)

    assert 0 < open_unit(Ends(0)) < 1e-15  # type: ignore[arg-type]
    assert 1 - 1e-15 < open_unit(Ends(-1)) < 1  # type: ignore[arg-type]
