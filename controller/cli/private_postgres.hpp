// The database of `perfrig up`: a PostgreSQL cluster of its own in a folder, on a Unix socket alone, run by an
// unprivileged user even when root starts it (PostgreSQL refuses root).
#pragma once

#include "common/process/run_command.hpp"

#include <optional>
#include <string>

namespace perfrig::cli {

class PrivatePostgres {
  public:
    // `folder` will hold data/, the socket and the log; `user` owns it where root calls.
    PrivatePostgres(std::string folder, std::optional<User> user);

    // initdb where the cluster does not exist yet, then starts it and waits until it answers. Starting a running one is
    // fine. Needs PostgreSQL 15 or newer; the newest installed is taken.
    Result<void> start();
    Result<void> stop(); // fast mode; stopping a stopped one is fine
    bool running() const;
    std::string connection_string() const;

  private:
    Result<CommandResult> pg_ctl(std::vector<std::string> arguments, Milliseconds within) const;
    Result<std::string> find_programs() const;
    std::string folder_;
    std::optional<User> user_;
};

} // namespace perfrig::cli
