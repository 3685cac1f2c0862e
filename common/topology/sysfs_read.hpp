// Single values of sysfs. Each reader gives nothing where the file is missing, empty, or refused by the kernel (all
// mean "not said"), a value where it is understood, and an error that names the file where it is not.
#pragma once

#include "common/base/cpu_list.hpp"
#include "common/base/file_tree.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace perfrig::sysfs {

Result<std::optional<std::int64_t>> number(const FileTree& tree, const std::string& path);
// "0-3,8"; also spaces and "(null)", which some kernels print for an empty nohz_full.
Result<std::optional<CpuList>> list(const FileTree& tree, const std::string& path);
// "00000000,0000000f": hexadecimal words of 32 bits, the lowest last.
Result<std::optional<CpuList>> mask(const FileTree& tree, const std::string& path);
// The MemTotal line of a node's meminfo ("Node 0 MemTotal:  16 kB"), in bytes.
Result<std::optional<std::uint64_t>> node_memory_bytes(const FileTree& tree, const std::string& path);

// The pure parts.
Result<CpuList> parse_list(std::string_view text);
Result<CpuList> parse_mask(std::string_view text);
Result<std::optional<std::uint64_t>> parse_node_memory_bytes(std::string_view text);

} // namespace perfrig::sysfs
