#include "common/net/backoff.hpp"

#include "tests/support/doctest.hpp"

#include <random>

using namespace perfrig;

TEST_CASE("the wait doubles up to its bound, half of it fixed and half random") {
    Backoff backoff(Milliseconds(100), Milliseconds(1000));
    constexpr std::int64_t ceilings[] = {100, 200, 400, 800, 1000, 1000, 1000};
    std::mt19937_64 random(7);
    for (int round = 0; round < 200; ++round) {
        for (const auto ceiling : ceilings) {
            const auto wait = backoff.next(random()).count();
            CHECK(wait >= ceiling / 2);
            CHECK(wait <= ceiling);
        }
        backoff.reset();
    }
}

TEST_CASE("the ends of the random range give the ends of the wait") {
    Backoff backoff(Milliseconds(100), Milliseconds(100));
    CHECK(backoff.next(0).count() == 50);
    CHECK(backoff.next(50).count() == 100);
}

TEST_CASE("odd bounds are put right and nothing overflows") {
    Backoff zero(Milliseconds(0), Milliseconds(0));
    CHECK(zero.next(0) == Milliseconds(1));
    Backoff swapped(Milliseconds(500), Milliseconds(10));
    CHECK(swapped.next(0) == Milliseconds(5));
    Backoff huge(Milliseconds(1), Milliseconds::max());
    for (int i = 0; i < 200; ++i) CHECK(huge.next(~0ULL) >= Milliseconds(1));
}
