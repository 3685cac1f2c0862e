// The text behind a YAML tree: places in it, and what is wrong with it before and after the parser has seen it.
// Used by yaml_tree.cpp alone.
#pragma once

#include "common/experiment/yaml_tree.hpp"

#include <cstdint>

namespace perfrig {

class YamlSource {
  public:
    explicit YamlSource(std::string_view text); // must outlive this

    // Bytes that aren't UTF-8, and control characters: refused before parsing, with the byte's offset.
    std::optional<Fault> bad_bytes() const;

    YamlMark mark(int byte) const; // line and column (in characters, where the parser counts bytes) of a byte
    char at(int byte) const;       // 0 past the end
    // The parser takes the end of the file for the end of a quoted value; a person has forgotten a quote.
    bool quote_is_closed(int opening_byte) const;

    // Of the block scalar that a '|' at this byte opens; 0 where an explicit indicator makes it hard to tell.
    int block_indent(int byte) const;

    // The parser's message, made kind. `opened`: where the innermost open list or map began.
    Fault explain(int byte, int line, const std::string& message, std::optional<YamlMark> opened) const;

  private:
    std::string_view line_text(int line) const; // from 1
    std::string_view text_;
    std::vector<std::size_t> line_starts_;
    std::vector<std::uint32_t> continuation_bytes_; // before each byte; empty if all of it is ASCII
};

} // namespace perfrig
