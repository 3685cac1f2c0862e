// The command line's view of a controller: JSON documents over its REST API. A refusal becomes an Error whose text
// holds what the server said, every fault of a definition included.
#pragma once

#include "common/base/json.hpp"
#include "common/net/http_client.hpp"

#include <optional>
#include <string>

namespace perfrig::cli {

// Where the controller is and who is asking.
struct Connection {
    std::string url = "http://127.0.0.1:7117";
    std::string token;
};

// What the user said (flags, then environment), completed by what `perfrig up` left in its folder.
// Order: `url`/`token_file` arguments, PERFRIG_URL and PERFRIG_TOKEN or PERFRIG_TOKEN_FILE, `up_folder`/client.json.
Result<Connection> find_connection(const std::string& url, const std::string& token_file, const std::string& up_folder);

class Client {
  public:
    // `on_terminal`: what the controller says is for a terminal, so all its texts are made printable.
    explicit Client(Connection connection, bool on_terminal = false);

    Result<Json> get(const std::string& target, Milliseconds within = Milliseconds(40'000)) const;
    Result<Json> post(const std::string& target, const Json& body, HttpHeaders headers = {}) const;
    Result<void> remove(const std::string& target) const; // DELETE
    Result<std::string> get_bytes(const std::string& target) const;

  private:
    Result<HttpResponse> call(const std::string& target, HttpCall call, Milliseconds within) const;
    Result<Json> read(const HttpResponse& response, const std::string& what) const;
    Connection connection_;
    bool on_terminal_;
};

} // namespace perfrig::cli
