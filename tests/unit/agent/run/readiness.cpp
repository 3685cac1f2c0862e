// Whether what answers is the service that was started.
#include "common/base/unique_fd.hpp"
#include "tests/unit/agent/run/run_rig.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

using namespace perfrig;
using namespace perfrig::testing;

namespace {

// Somebody else's server, which accepts and says nothing.
struct Stranger {
    UniqueFd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    std::uint16_t port = 0;
    Stranger() {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
        REQUIRE(::listen(socket.get(), 8) == 0);
        REQUIRE(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
        port = ntohs(address.sin_port);
    }
};

} // namespace

TEST_CASE("a run is refused where another program answers already at the address of one of its services") {
    RunRig rig;
    const Stranger stranger;
    const std::string at = "127.0.0.1:" + std::to_string(stranger.port);
    std::int64_t id = 0;
    for (const Readiness& ready : {Readiness{Readiness::Kind::tcp, at, {}, 5'000},
                                   Readiness{Readiness::Kind::http, "http://" + at + "/", {}, 5'000}}) {
        ResolvedRun run = rig.run();
        ServiceSpec second = run.services[0]; // not only the first is looked at
        second.name = "second";
        second.ready = ready;
        run.services.push_back(second);
        CHECK(rig.work(run, ++id).state == "refused");
        INFO(rig.sink.end_reason(id));
        CHECK(rig.sink.end_reason(id).find("service 'second': another program answers at " + at) != std::string::npos);
        CHECK(rig.sink.of<protocol::ProcessStarted>(id).empty()); // not even the first service
    }
    CHECK(rig.nothing_left());
}
