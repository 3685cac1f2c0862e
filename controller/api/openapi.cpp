#include "controller/api/openapi.hpp"

#include "common/experiment/yaml_tree.hpp"
#include "schemas/embedded.hpp"

#include <stdexcept>

namespace perfrig::api {

Json openapi_document() {
    for (const auto& file : schemas::files()) {
        if (file.name != "openapi.yaml") continue;
        const auto read = parse_yaml(file.content);
        if (!read.tree || !read.faults.empty())
            throw std::logic_error(read.faults.empty() ? "openapi.yaml is empty"
                                                       : read.faults.front().text("openapi.yaml"));
        return to_json(*read.tree);
    }
    throw std::logic_error("openapi.yaml is not embedded");
}

} // namespace perfrig::api
