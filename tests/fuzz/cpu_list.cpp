// Any text as a CPU list: refused, or equal to itself when it is printed and read again.
#include "common/base/cpu_list.hpp"

#include <cstdint>
#include <cstdlib>

using namespace perfrig;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const Result<CpuList>& list : {CpuList::parse(text), CpuList::parse_kernel(text)}) {
        if (!list) continue;
        const Result<CpuList> again = CpuList::parse(list->text());
        if (!again || *again != *list) std::abort();
    }
    return 0;
}
