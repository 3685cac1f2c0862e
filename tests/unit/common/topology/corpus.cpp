// Real machines as recorded trees, where PERFRIG_CORPUS names the folder of cases; they are not part of this project.
#include "common/base/json.hpp"
#include "common/topology/topology.hpp"

#include "tests/support/doctest.hpp"
#include "tests/support/temp_tree.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

using namespace perfrig;

namespace {

void check_cpus(const Topology& t, const Json& expected) {
    CHECK(t.cpus.size() == expected.size());
    for (const Json& cpu : expected) {
        const int id = cpu["cpu"].get<int>();
        INFO("CPU " << id);
        REQUIRE(t.cpus.contains(id));
        const CpuTopology& read = t.cpus.at(id);
        const auto same = [&](const char* key, const auto& value) {
            INFO(key);
            const Json& wanted = cpu.contains(key) ? cpu[key] : Json();
            if (wanted.is_null() || wanted.get<std::int64_t>() < 0)
                CHECK_FALSE(value);
            else
                CHECK((value && *value == wanted.get<std::int64_t>()));
        };
        same("core_id", read.core);
        same("package_id", read.package);
        same("node", read.node);
        if (cpu.contains("max_khz") && read.max_khz) same("max_khz", read.max_khz);
        CHECK(read.smt_siblings.both(t.online).text() == cpu["smt_siblings"].get<std::string>());
    }
}

void check_nodes(const Topology& t, const Json& expected) {
    CHECK(t.nodes.size() == expected.size());
    for (const MemoryNode& node : t.nodes) {
        INFO("node " << node.node);
        REQUIRE(expected.contains(std::to_string(node.node)));
        const Json& wanted = expected[std::to_string(node.node)];
        CHECK(node.cpus.text() == wanted["cpus"].get<std::string>());
        const Json& bytes = wanted["mem_total_bytes"];
        if (!bytes.is_null()) CHECK((node.memory_bytes && *node.memory_bytes == bytes.get<std::uint64_t>()));
    }
}

} // namespace

TEST_CASE("recorded machines read as their records expect") {
    const char* corpus = std::getenv("PERFRIG_CORPUS");
    if (corpus == nullptr) {
        std::puts("SKIPPED recorded machines read as their records expect: PERFRIG_CORPUS is not set");
        return;
    }
    std::size_t machines = 0;
    for (const auto& entry : std::filesystem::directory_iterator(std::string(corpus) + "/topology")) {
        if (!entry.is_directory()) continue;
        INFO(entry.path().string());
        const auto expected = parse_json(read_file(entry.path() / "expected.json").value(), "expected.json").value();
        test::TempTree tmp;
        const std::string unpack =
            "tar -xzf '" + (entry.path() / "sysroot.tar.gz").string() + "' -C '" + tmp.root() + "'";
        REQUIRE(std::system(unpack.c_str()) == 0);
        const auto read = read_topology(FileTree(tmp.root() + "/sysroot"));
        REQUIRE(read);
        const Json& wanted = expected["expected"];
        CHECK(read->online.text() == wanted["online"].get<std::string>());
        CHECK(read->cores() == wanted["physical_cores_online"].get<std::size_t>());
        for (const auto& [file, list] :
             {std::pair{"present", &read->present}, {"possible", &read->possible}, {"offline", &read->offline}})
            if (!wanted["files"][file].is_null()) CHECK(list->text() == wanted["files"][file].get<std::string>());
        check_cpus(*read, wanted["cpus"]);
        check_nodes(*read, wanted["nodes"]);
        ++machines;
    }
    CHECK(machines > 0);
}
