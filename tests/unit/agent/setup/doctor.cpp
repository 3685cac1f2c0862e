// What doctor says with a configuration, with what `perfrig up` wrote, and with none.
#include "agent/setup/doctor.hpp"

#include "common/base/file_tree.hpp"
#include "common/base/hash.hpp"
#include "common/topology/topology.hpp"
#include "tests/support/doctest.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace perfrig;

namespace {

const Diagnosis* about(const std::vector<Diagnosis>& all, const std::string& what) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Diagnosis& d) { return d.what == what; });
    return found == all.end() ? nullptr : &*found;
}

AgentConfig config_of(const std::string& text, const std::string& file) {
    return parse_config(text, file, {{"state_dir", "/tmp/perfrig-doctor-" + random_hex(4)}}).value();
}

} // namespace

TEST_CASE("without a configuration nothing that one would say is bad, and what was assumed is said") {
    const AgentConfig none = config_of("", "");
    const auto all = examine_machine(none, FileTree());
    const Diagnosis* configuration = about(all, "configuration");
    REQUIRE(configuration);
    CHECK(configuration->grade == Diagnosis::Grade::note);
    CHECK(configuration->text.find(none.state_dir) != std::string::npos);
    CHECK(configuration->text.find(none.name) != std::string::npos);
    for (const char* what : {"privileges", "profile"}) {
        REQUIRE(about(all, what));
        CHECK(about(all, what)->grade == Diagnosis::Grade::note);
    }
    CHECK(examine_controller(none).grade == Diagnosis::Grade::note);
    std::ostringstream out;
    CHECK(doctor(none, out) == 0);
    CHECK(out.str().find("BAD") == std::string::npos);
    CHECK(out.str().find("once it has a configuration") != std::string::npos);
}

TEST_CASE("the profile that is proposed is one that this machine can hold") {
    const auto all = examine_machine(config_of("", ""), FileTree());
    const std::string remedy = about(all, "profile")->remedy;
    const auto proposed = config_of(remedy.substr(remedy.find("profile: {")), "agent.yaml");
    CHECK(proposed.profile.roles.size() == 3);
    for (const Diagnosis& d : examine_machine(proposed, FileTree()))
        if (d.what == "profile") CHECK(d.grade != Diagnosis::Grade::bad);
}

TEST_CASE("a configuration that leaves out what runs need is bad, as before") {
    const AgentConfig bare = config_of("name: bare\n", "/etc/perfrig/agent.yaml");
    const auto all = examine_machine(bare, FileTree());
    CHECK(about(all, "configuration")->grade == Diagnosis::Grade::good);
    CHECK(about(all, "configuration")->text.find("/etc/perfrig/agent.yaml") == 0);
    CHECK(about(all, "profile")->grade == Diagnosis::Grade::bad);
    CHECK(examine_controller(bare).grade == Diagnosis::Grade::bad);
    std::ostringstream out;
    CHECK(doctor(bare, out) == 1);
}

TEST_CASE("what perfrig up wrote is found where it was told to write, and said to be that") {
    const std::string folder = "/tmp/perfrig-doctor-" + random_hex(4);
    std::filesystem::create_directory(folder);
    ::setenv("PERFRIG_DIR", folder.c_str(), 1);
    CHECK(config_of_up().empty());
    std::ofstream(folder + "/agent.yaml") << "name: up\n";
    CHECK(config_of_up() == folder + "/agent.yaml");
    const Diagnosis said = examine_configuration(config_of("name: up\n", folder + "/agent.yaml"));
    CHECK(said.text.find("`perfrig up`") != std::string::npos);
    ::unsetenv("PERFRIG_DIR");
    std::filesystem::remove_all(folder);
}

TEST_CASE("roles that share CPUs by the profile's word are one note, however many pairs they make") {
    const auto config = config_of("name: a\nprofile: {roles: {app: \"0\", db: \"0\", load: \"0\"}, "
                                  "share: [[app, db, load]]}\n",
                                  "agent.yaml");
    int notes = 0;
    for (const Diagnosis& d : examine_machine(config, FileTree()))
        if (d.what == "profile" && d.grade == Diagnosis::Grade::note) {
            ++notes;
            CHECK(d.text.find("app and db CPU 0, app and load CPU 0, db and load CPU 0") != std::string::npos);
        }
    CHECK(notes == 1);
}
