// A WebSocket connection, the same for both ends. A small pump reads ahead (at most read_ahead_bytes plus one
// message), so that pings are answered and a vanished peer is noticed while nobody calls read(), and a read() whose
// deadline passes loses nothing. Writers queue: frames leave whole and in the order of the write() calls.
//
// All calls come from one executor that only one thread runs at a time. Moving is cheap; destroying the object without
// close() drops the connection at once.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <string>

namespace perfrig {

struct WebSocketOptions {
    std::size_t most_message_bytes = 4 << 20; // a bigger message from the peer ends the connection (close code 1009)
    std::size_t read_ahead_bytes = 1 << 20;   // the pump pauses above this
    std::size_t write_queue_bytes = 16 << 20; // write() beyond this is refused
    std::size_t write_buffer_bytes =
        128 << 10;                  // masking buffer of the client; 4 KiB would cut big frames into 16 writes
    Milliseconds handshake{10'000}; // for the upgrade, and for the closing handshake
    // A peer that sends nothing (not even a pong) for this long is taken for vanished. Pings go out at half of it.
    Milliseconds idle{30'000};
    bool keep_alive_pings = true;
};

struct WebSocketMessage {
    bool binary = false;
    std::string data;
};

class WebSocket {
  public:
    struct State; // Beast lives behind this
    explicit WebSocket(std::shared_ptr<State> state);
    WebSocket(WebSocket&&) noexcept;
    WebSocket& operator=(WebSocket&&) noexcept;
    ~WebSocket();

    // The next message. timed_out: none came, nothing is lost, read again. unavailable: closed or broken; says why,
    // with the peer's close code and reason. Messages that arrived before the end are delivered first.
    // One reader at a time.
    boost::asio::awaitable<Result<WebSocketMessage>> read(Deadline deadline);

    // Returns when the frame has been handed to the kernel (not: when the peer has it). Any number of writers.
    // timed_out while still queued: it will not be sent, the connection goes on. timed_out in the middle of it: the
    // connection is dropped, since half a frame can't be taken back. unavailable: closed, broken, or the queue is full.
    boost::asio::awaitable<Result<void>> write(bool binary, std::string data, Deadline deadline);

    // Sends what is queued, then the closing handshake; drops the connection where that takes longer than the
    // deadline. `reason` is cut to 123 bytes. Codes: 1000 done, 1001 going away, 1008 policy, 4000-4999 our own.
    boost::asio::awaitable<void> close(std::string reason, Deadline deadline, std::uint16_t code = 1000);

    void drop();       // cuts the connection now, without a handshake; readers and writers get unavailable
    bool open() const; // false once closed, broken or dropped
    std::string peer_address() const;
    std::size_t queued_bytes() const; // waiting to be written, the frame under way included

  private:
    std::shared_ptr<State> state_;
};

} // namespace perfrig
