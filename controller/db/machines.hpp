// Machines: who they are, what their agents last said, and their state. State machines are decided in
// controller/queue; here a change names the states it may start from, so that two deciders can't both win.
#pragma once

#include "controller/db/connection.hpp"
#include "controller/model/machine.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig::db::machines {

// The machine of this name, made (state enrolling) where there is none. bad_input for a name that tables refuse.
Result<model::Machine> enrol(Connection& c, std::string_view name, const Json& labels);

// What an agent says of itself at hello; last_seen becomes now. The environment is stored once per fingerprint.
struct HelloUpdate {
    std::string boot_id;
    std::int64_t epoch = 0; // conflict where the stored epoch is larger: an older agent, or a copy of its state
                            // forbidden where the machine was forgotten
    std::string agent_version;
    Json profile = Json::object();
    Json labels = Json::object();
    std::string metrics_url;
    Json environment = Json::object(); // {"facts", "raw", "fingerprint"}; empty: none
};
Result<model::Machine> hello(Connection& c, model::Id machine, const HelloUpdate& update);

// A start of the machine's agent; `id` as protocol::Hello::start_id.
struct Start {
    std::int64_t epoch = 0;
    std::string id;
};
// Remembers starts that are new. The first epoch that is known with another id, if there is one: then another agent has
// been that start, and nothing may be taken from this one.
Result<std::optional<std::int64_t>> claim_starts(Connection& c, model::Id machine, std::span<const Start> starts);

// last_seen = now, and the clock's offset where it is known.
Result<void> seen(Connection& c, model::Id machine, std::optional<std::int64_t> offset_ns,
                  std::optional<std::int64_t> offset_error_ns);

// Changes the state where it is one of `from` (empty: any); false: it was another, and nothing changed. Going to
// unreachable remembers the state before. Written to event.
Result<bool> change_state(Connection& c, model::Id machine, std::span<const model::MachineState> from,
                          model::MachineState to, std::string_view reason, std::string_view actor);
// A person takes a machine out of the queue: idle -> held at once; leased -> draining (held when the lease ends);
// conflict from other states. release: held, draining or quarantined -> idle (leased while a lease stands).
Result<model::Machine> hold(Connection& c, std::string_view name, std::string_view reason, std::string_view actor);
Result<model::Machine> release(Connection& c, std::string_view name, std::string_view actor);

// Its name is free again, its agent's token is revoked, and its row stays for the history of its runs. conflict while a
// block has its lease, or where its agent was heard within `silent_for`: by whichever controller it is connected to.
Result<void> forget(Connection& c, std::string_view name, Milliseconds silent_for, std::string_view actor);

Result<std::vector<model::Machine>> list(Connection& c);                      // by name
Result<std::map<model::Id, std::string>> names(Connection& c);                // of forgotten ones too
Result<model::Machine> find(Connection& c, std::string_view name);            // not_found
Result<model::Machine> find_by_id(Connection& c, model::Id machine);          // not_found; a forgotten one is found
Result<model::Environment> environment(Connection& c, model::Id environment); // not_found
// Machines that were not seen for this long and are not yet unreachable.
Result<std::vector<model::Machine>> unseen_for(Connection& c, Milliseconds time);

} // namespace perfrig::db::machines
