// One queuing of an experiment's definition: what is asked for, and how far it has come.
#pragma once

#include "controller/model/machine.hpp"

#include <map>
#include <vector>

namespace perfrig::model {

struct Submission {
    Id id = 0;
    std::string experiment;
    std::string source;     // who queued it: cli, jenkins, a person's word
    std::string definition; // the file as sent; left empty in lists
    std::string definition_sha;
    Json plan = Json::object(); // the expanded plan's summary
    int priority = 0;           // larger first
    std::int64_t seed = 0;
    std::optional<std::string> machine_name; // asked for by name; none: any that has the labels
    Json machine_labels = Json::object();
    SubmissionState state = SubmissionState::queued;
    std::string reason;
    bool cancel_requested = false;
    std::int64_t created_utc_ns = 0;
    std::optional<std::int64_t> ended_utc_ns;
};

// Of each replicate the last attempt counts.
struct RunCounts {
    std::map<RunState, std::int64_t> by_state;  // states without runs are left out
    std::map<Verdict, std::int64_t> by_verdict; // of those that have ended
    std::int64_t total() const;
    std::int64_t ended() const;
};

struct Cell {
    Id id = 0;
    Id submission_id = 0;
    int ordinal = 0;
    std::string cell_key;                      // hash of the levels alone
    std::map<std::string, std::string> levels; // factor -> level, as text
};

struct Block {
    Id id = 0;
    Id submission_id = 0;
    int ordinal = 0;
    Json boot_state = Json::object();
    BlockState state = BlockState::pending;
    std::string reason;
    std::string machine_name; // that its last run was given to; empty: none yet
};

struct Lease {
    Id machine_id = 0;
    Id block_id = 0;
    std::int64_t token = 0; // fencing token; only grows, over all machines
    LeaseState state = LeaseState::granted;
    std::int64_t renew_by_utc_ns = 0;
    bool overdue = false; // renew_by has passed, by the database's clock
};

// What is to be stored for a new submission. Runs refer to cells and blocks by their places in these vectors.
struct NewRun {
    std::size_t cell = 0;
    std::size_t block = 0;
    int position = 0; // order within the block
    int replicate = 1;
    Json resolved = Json::object();
    std::string resolved_sha;
};
struct NewCell {
    std::string cell_key;
    std::map<std::string, std::string> levels;
};
struct NewSubmission {
    std::string experiment;
    std::string source;
    std::string definition;
    std::string definition_sha;
    Json plan = Json::object();
    std::string idempotency_token; // hash of the token that sent the key
    std::string idempotency_key;   // empty: none
    std::string request_sha;       // of all that was asked for, beside the key; empty: definition_sha
    int priority = 0;
    std::int64_t seed = 0;
    std::optional<std::string> machine_name;
    Json machine_labels = Json::object();
    std::vector<NewCell> cells;
    std::vector<Json> blocks; // boot state of each
    std::vector<NewRun> runs;
};

} // namespace perfrig::model
