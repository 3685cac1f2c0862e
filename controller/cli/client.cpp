#include "controller/cli/client.hpp"

#include "common/base/file_tree.hpp"
#include "common/base/printable.hpp"

#include <cstdlib>

namespace perfrig::cli {

namespace {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

Result<std::string> read_token(const std::string& path) {
    PERFRIG_TRY(std::string token, read_file(path, 4096));
    while (!token.empty() && (token.back() == '\n' || token.back() == ' ')) token.pop_back();
    if (token.empty())
        return fail(ErrorKind::bad_input, "read the token", path, "the file is empty",
                    "name another with --token-file");
    return token;
}

Json printable(const Json& json) {
    if (json.is_string()) return perfrig::printable(json.get_ref<const std::string&>());
    if (!json.is_structured()) return json;
    Json out = json.is_array() ? Json::array() : Json::object();
    for (const auto& [key, value] : json.items())
        if (json.is_array())
            out.push_back(printable(value));
        else
            out[perfrig::printable(key)] = printable(value);
    return out;
}

Error elsewhere(const std::string& url, const std::string& answer) {
    return {ErrorKind::bad_input, "", "", "what answers at " + url + " is not a perfrig controller's API: " + answer,
            "name the controller with --url"};
}

// The server's problem document as one Error: its detail, and a line for each fault.
Error refusal(const HttpResponse& response, const std::string& url, const std::string& target) {
    const std::string status = "HTTP " + std::to_string(response.status);
    Error error{kind_of_status(response.status), "have the controller do", target, status, {}};
    const auto problem = parse_json(response.body, "the controller's answer");
    // Of 500 and more, a proxy before a controller that is away may be the one that speaks.
    const bool refused = response.status < 500;
    if (!response.content_type.starts_with("application/problem+json") || !problem || !problem->is_object())
        return refused ? elsewhere(url, status + " for " + target) : error;
    JsonReader in(*problem, "problem");
    error.why = in.string_or("detail", error.why);
    if (refused) error.tried = error.on = ""; // the controller's own words say what could not be done
    error.remedy = in.string_or("remedy", "");
    if (in.has("faults") && (*problem)["faults"].is_array())
        for (const Json& fault : (*problem)["faults"])
            if (fault.is_object()) {
                JsonReader f(fault, "fault");
                const std::string remedy = f.string_or("remedy", "");
                error.why += "\n  line " + std::to_string(f.integer_or("line", 0)) + ", column " +
                             std::to_string(f.integer_or("column", 0)) + ": " + f.string_or("message", "") +
                             (remedy.empty() ? "" : " (" + remedy + ")");
            }
    if (response.status == 401) error.remedy = "give a valid token with --token-file or PERFRIG_TOKEN_FILE";
    return error;
}

} // namespace

Result<Connection> find_connection(const std::string& url, const std::string& token_file,
                                   const std::string& up_folder) {
    Connection found;
    std::string file = token_file;
    bool have_url = false;
    if (const std::string left = up_folder + "/client.json"; ::access(left.c_str(), R_OK) == 0) {
        PERFRIG_TRY(const std::string text, read_file(left));
        PERFRIG_TRY(const Json json, parse_json(text, left));
        JsonReader in(json, left);
        found.url = in.string("url");
        if (file.empty()) file = in.string("token_file");
        PERFRIG_CHECK(in.finish());
        have_url = true;
    }
    if (const std::string value = environment("PERFRIG_URL"); !value.empty()) found.url = value, have_url = true;
    if (!url.empty()) found.url = url, have_url = true;
    if (token_file.empty()) {
        if (const std::string value = environment("PERFRIG_TOKEN"); !value.empty()) {
            found.token = value;
            return found;
        }
        if (const std::string value = environment("PERFRIG_TOKEN_FILE"); !value.empty()) file = value;
    }
    if (file.empty())
        return fail(ErrorKind::bad_input, "ask the controller", found.url, "there is no token",
                    have_url ? "name one with --token-file, PERFRIG_TOKEN_FILE or PERFRIG_TOKEN"
                             : "start one on this machine with `perfrig up`, or name one with --url and --token-file");
    PERFRIG_TRY(found.token, read_token(file));
    return found;
}

Client::Client(Connection connection, bool on_terminal)
    : connection_(std::move(connection)), on_terminal_(on_terminal) {}

Result<Json> Client::read(const HttpResponse& response, const std::string& what) const {
    if (!response.content_type.starts_with("application/json"))
        return elsewhere(connection_.url, what + " has the type '" + response.content_type + "'");
    PERFRIG_TRY(const Json json, parse_json(response.body, what));
    return on_terminal_ ? printable(json) : json;
}

Result<HttpResponse> Client::call(const std::string& target, HttpCall call, Milliseconds within) const {
    PERFRIG_TRY(const Url url, parse_url(connection_.url));
    call.headers.set("Authorization", "Bearer " + connection_.token);
    auto response = http_request_blocking(url.with_target(target), std::move(call), Deadline::in(within));
    if (!response && response.error().tried == "connect to")
        return fail(response.error().kind, "", "",
                    "no controller answers at " + connection_.url +
                        ": start one with `perfrig up`, or name one with --url",
                    response.error().why);
    if (!response) return std::move(response).error();
    if (response->status >= 400) return refusal(*response, connection_.url, target);
    return response;
}

Result<Json> Client::get(const std::string& target, Milliseconds within) const {
    HttpCall call;
    PERFRIG_TRY(const HttpResponse response, this->call(target, std::move(call), within));
    return read(response, "the answer to GET " + target);
}

Result<std::string> Client::get_bytes(const std::string& target) const {
    HttpCall call;
    PERFRIG_TRY(HttpResponse response, this->call(target, std::move(call), Milliseconds(60'000)));
    return std::move(response.body);
}

Result<void> Client::remove(const std::string& target) const {
    HttpCall call;
    call.method = "DELETE";
    PERFRIG_CHECK(this->call(target, std::move(call), Milliseconds(60'000)));
    return {};
}

Result<Json> Client::post(const std::string& target, const Json& body, HttpHeaders headers) const {
    HttpCall call;
    call.method = "POST";
    call.headers = std::move(headers);
    call.content_type = "application/json";
    call.body = body.dump();
    PERFRIG_TRY(const HttpResponse response, this->call(target, std::move(call), Milliseconds(60'000)));
    return read(response, "the answer to POST " + target);
}

} // namespace perfrig::cli
