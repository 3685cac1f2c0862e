// Everything of the agent link that comes from the other end: messages, run events, samples, batches of records.
// Whatever is accepted must be the same after one more round.
#include "common/protocol/messages.hpp"
#include "common/protocol/run_event.hpp"
#include "common/protocol/sample_frame.hpp"
#include "common/protocol/spool_record.hpp"

#include <cstdlib>

using namespace perfrig::protocol;

namespace {
void must(bool holds) {
    if (!holds) std::abort();
}
} // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto message = decode_from_agent(text)) {
        const std::string once = encode(*message);
        must(encode(decode_from_agent(once).value()) == once);
    }
    if (const auto message = decode_from_controller(text)) {
        const std::string once = encode(*message);
        must(encode(decode_from_controller(once).value()) == once);
    }
    if (const auto event = decode_run_event(text)) {
        const std::string once = encode(*event);
        must(encode(decode_run_event(once).value()) == once);
    }
    if (const auto frame = decode_samples(text)) must(encode_samples(*frame) == text);
    if (const auto batch = decode_batch(text)) {
        std::string again = encode_batch_header(batch->epoch);
        for (const SpoolRecord& record : batch->records) again += encode_record(record);
        must(again == text);
    }
    return 0;
}
