// The agent's spool: everything about runs lies on disk before it is sent, until the controller has it for good.
//
//   FOLDER/<epoch>/<first seq>.seg     append-only segments; the newest of the current epoch grows
//   FOLDER/<epoch>/start               the random id of that start (protocol::Hello::start_id)
//   FOLDER/ballast                     bytes given back when the disk is full, so that a run's end can still be written
//
// An append is one write(2): when it has returned, a SIGKILL loses nothing of it; sync() (fdatasync) makes it last
// through a power cut too. A write that fails half-way is cut off again, so a segment is torn only at the end of an
// epoch that was killed. Size is bounded: samples are refused above `most_bytes` less the reserve, events go on.
// Thread-safe: the run's threads append while the link reads.
#pragma once

#include "agent/run/event_sink.hpp"
#include "agent/session/spool_segment.hpp"
#include "common/base/unique_fd.hpp"
#include "common/protocol/messages.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace perfrig {

struct SpoolLimits {
    std::uint64_t most_bytes = 4ULL << 30;
    std::uint64_t event_reserve_bytes = 64ULL << 20; // of most_bytes: not for samples
    std::uint64_t segment_bytes = 8ULL << 20;
    std::uint64_t ballast_bytes = 1ULL << 20;
};

struct SpoolPosition {
    std::int64_t epoch = 0;
    std::uint64_t seq = 0; // the last record that was dealt with; 0: none of this epoch
    friend auto operator<=>(const SpoolPosition&, const SpoolPosition&) = default;
};

// Encoded records, one behind the other, of one epoch: what follows a batch header.
struct SpoolChunk {
    std::int64_t epoch = 0;
    std::uint64_t first_seq = 0, last_seq = 0;
    std::string records;
};

struct SpoolFigures {
    std::uint64_t bytes = 0, records = 0;
    std::int64_t oldest_age_ns = 0; // of the oldest record that isn't acknowledged, as far as this epoch knows; 0: none
    std::uint64_t samples_refused = 0; // frames, since the start
};

class Spool final : public EventSink {
  public:
    // `folder` is made where it is missing. Reads what older epochs left: torn ends are cut off, damage is skipped and
    // reported by take_damage(). `epoch` must be above all that are there.
    static Result<std::unique_ptr<Spool>> open(const std::string& folder, std::int64_t epoch,
                                               const SpoolLimits& limits = {});

    Result<void> append_event(std::string_view payload) override;
    Result<Stored> append_samples(std::string_view payload) override;
    Result<void> sync() override;
    std::uint64_t last_sequence() const override;
    std::int64_t epoch() const { return epoch_; }
    std::string start_id() const; // of this start

    // The next records behind `after`, oldest epoch first, at most `most_bytes` of them (but at least one); nothing:
    // all was read. Sequence numbers rise by one: what is lost on disk has a stand-in that says so.
    Result<std::optional<SpoolChunk>> read_after(SpoolPosition after, std::size_t most_bytes);
    // The controller has everything of the epoch up to `seq`: segments that it covers are deleted.
    void acknowledge(SpoolPosition upto);

    std::vector<protocol::SpoolRange> ranges() const; // what hello says
    SpoolFigures figures() const;
    std::vector<SpoolDamage> take_damage();
    // Called after each append, from the appending thread; must not call back into the spool.
    void on_append(std::function<void()> callback);

  private:
    struct Segment {
        std::string path;
        std::uint64_t first_seq = 0, last_seq = 0, bytes = 0;
    };
    Spool(std::string folder, std::int64_t epoch, const SpoolLimits& limits);
    Result<void> recover_epoch(std::int64_t epoch);
    void remove_epoch(std::int64_t epoch); // its folder, once no record is left in it
    Result<void> append(protocol::RecordKind kind, std::string_view payload);
    Result<void> new_segment();
    Result<void> write_whole(std::string_view bytes);
    void make_ballast();
    bool drop_ballast();
    std::string epoch_folder(std::int64_t epoch) const;
    std::uint64_t bytes_unlocked() const;

    const std::string folder_;
    const std::int64_t epoch_;
    const SpoolLimits limits_;
    mutable std::mutex mutex_;
    std::map<std::int64_t, std::deque<Segment>> segments_; // by epoch; the last of epoch_ is the open one
    UniqueFd file_;                                        // the open segment
    std::uint64_t last_seq_ = 0;
    std::map<std::int64_t, std::uint64_t> acknowledged_;
    std::map<std::int64_t, std::string> start_ids_;                 // by epoch
    std::deque<std::pair<std::uint64_t, std::int64_t>> written_at_; // (seq, monotonic ns) about once a second
    std::uint64_t samples_refused_ = 0;
    bool ballast_ = false;
    std::vector<SpoolDamage> damage_;
    std::set<std::string> unreadable_; // segments that were fine once
    std::function<void()> on_append_;
    struct { // where the last read ended: the next one usually begins there
        std::string path;
        std::uint64_t offset = 0, seq = 0;
    } last_read_;
};

} // namespace perfrig
