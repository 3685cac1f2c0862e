#include "common/net/beast_stream.hpp"
#include "common/net/task_group.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/error.hpp>
#include <netdb.h>
#include <sys/auxv.h>

// glibc's own, without a header: which sources a name is looked up in, instead of /etc/nsswitch.conf.
extern "C" int __nss_configure_lookup(const char* database, const char* sources);

namespace perfrig {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// A statically linked program has "files" and "dns" built in (glibc 2.34 on), but for any other source that
// nsswitch.conf names (mdns4, resolve, myhostname, sss) it would load this machine's plug-ins, which were built for
// another glibc and may crash it. So a static program looks into those two only. AT_BASE is where the kernel put the
// dynamic loader; without one the program is static.
void keep_to_built_in_name_lookup() {
    static const int once = getauxval(AT_BASE) == 0 ? __nss_configure_lookup("hosts", "files dns") : 0;
    static_cast<void>(once);
}

struct Lookup {
    explicit Lookup(asio::any_io_executor executor) : resolver(executor), done(executor) {}
    tcp::resolver resolver;
    AsyncEvent done;
    bool ended = false;
    boost::system::error_code error;
    tcp::resolver::results_type found;
};

// getaddrinfo can't be interrupted: past the deadline the lookup is left to end by itself.
asio::awaitable<Result<tcp::resolver::results_type>> resolve(std::string host, std::uint16_t port, Deadline deadline) {
    boost::system::error_code not_literal;
    const auto address = asio::ip::make_address(host, not_literal);
    if (!not_literal)
        co_return tcp::resolver::results_type::create(tcp::endpoint(address, port), host, std::to_string(port));
    keep_to_built_in_name_lookup();
    auto lookup = std::make_shared<Lookup>(co_await asio::this_coro::executor);
    lookup->resolver.async_resolve(host, std::to_string(port), tcp::resolver::numeric_service,
                                   [lookup](boost::system::error_code error, tcp::resolver::results_type found) {
                                       lookup->ended = true;
                                       lookup->error = error;
                                       lookup->found = std::move(found);
                                       lookup->done.notify_all();
                                   });
    while (!lookup->ended) {
        if (!co_await lookup->done.wait(deadline))
            co_return fail(ErrorKind::timed_out, "look up the name", host, "the deadline passed",
                           "check DNS, or give the address");
    }
    if (lookup->error) co_return net_error(lookup->error, "look up the name", host, "check the name and DNS");
    co_return lookup->found;
}

} // namespace

Error net_error(boost::system::error_code code, std::string tried, std::string on, std::string remedy) {
    if (code == boost::beast::error::timeout)
        return fail(ErrorKind::timed_out, std::move(tried), std::move(on), "the deadline passed", std::move(remedy));
    return fail(ErrorKind::unavailable, std::move(tried), std::move(on), code.message(), std::move(remedy));
}

asio::awaitable<Result<tcp::socket>> connect_tcp(std::string host, std::uint16_t port, Deadline deadline) {
    const std::string name = host.find(':') == std::string::npos ? host + ":" + std::to_string(port)
                                                                 : "[" + host + "]:" + std::to_string(port);
    PERFRIG_CO_TRY(auto endpoints, co_await resolve(host, port, deadline));
    boost::beast::tcp_stream stream(co_await asio::this_coro::executor);
    stream.expires_at(deadline.when());
    boost::system::error_code error;
    co_await stream.async_connect(endpoints, into(error));
    if (error) co_return net_error(error, "connect to", name, "check that it runs and listens there");
    stream.socket().set_option(tcp::no_delay(true), error);
    co_return stream.release_socket();
}

std::string address_text(const asio::ip::address& address) {
    if (address.is_v6() && address.to_v6().is_v4_mapped())
        return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
    return address.to_string();
}

} // namespace perfrig
