// Free TCP ports of this machine for ${port.NAME}: outside the kernel's ephemeral range, so that no outgoing connection
// (of the load, above all) takes one between now and the service's own bind.
#pragma once

#include "common/base/file_tree.hpp"
#include "common/base/result.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace perfrig {

Result<std::map<std::string, std::uint16_t>> find_free_ports(const FileTree& tree,
                                                             const std::vector<std::string>& names);

struct PortRange {
    int first = 0, last = 0;
};
// From net.ipv4.ip_local_port_range ("32768\t60999"): the larger of what lies below (from 10000) and above it.
PortRange ports_outside(std::string_view ephemeral_range);

} // namespace perfrig
