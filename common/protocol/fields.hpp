// How the structs of this folder become JSON objects and come back: each struct lists its members once, as a function
// template over a Writer or a Reader, so that encoding and decoding can't drift apart.
//
//   template <class IO> void members(IO& io, Of<IO, Cursor>& c) { io.integer("epoch", c.epoch, 1); ... }
//
// The Reader is strict: a missing or unknown member, a wrong type, a value out of bounds, a text that is too long or
// holds a NUL byte (PostgreSQL can't keep one) is the fault, and the first one is reported with its place. The Writer
// never produces what the Reader refuses: bytes that aren't UTF-8 and NULs become U+FFFD, texts are cut at their bound.
#pragma once

#include "common/base/json.hpp"
#include "common/base/result.hpp"

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace perfrig::protocol {

constexpr std::size_t most_name_bytes = 512;
constexpr std::size_t most_text_bytes = 64 << 10;
constexpr std::size_t most_map_entries = 1'000;

template <class IO, class T> using Of = std::conditional_t<IO::writes, const T, T>;

// `text` as the Reader accepts it: valid UTF-8 without NUL, at most `most` bytes.
std::string presentable(std::string_view text, std::size_t most);
Json presentable(const Json& json);

class Writer {
  public:
    static constexpr bool writes = true;
    explicit Writer(Json out = Json::object()) : out_(std::move(out)) {}

    template <class T>
    void integer(const char* key, const T& value, std::int64_t = 0, std::int64_t = std::numeric_limits<T>::max()) {
        out_[key] = value;
    }
    void optional_integer(const char* key, const std::optional<std::int64_t>& value) {
        out_[key] = value ? Json(*value) : Json(nullptr);
    }
    void optional_real(const char* key, const std::optional<double>& value) {
        out_[key] = value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
    }
    void boolean(const char* key, const bool& value) { out_[key] = value; }
    void name(const char* key, const std::string& value) { out_[key] = presentable(value, most_name_bytes); }
    void text(const char* key, const std::string& value) { out_[key] = presentable(value, most_text_bytes); }
    void word(const char* key, const std::string& value, std::initializer_list<const char*>) { out_[key] = value; }
    void object(const char* key, const Json& value) { out_[key] = presentable(value); }
    void anything(const char* key, const Json& value) { out_[key] = value; }
    void text_map(const char* key, const std::map<std::string, std::string>& value);
    void text_list(const char* key, const std::vector<std::string>& value);
    template <class T> void part(const char* key, const T& value) {
        Writer inner;
        members(inner, value);
        out_[key] = inner.take();
    }
    template <class T> void list(const char* key, const std::vector<T>& values, std::size_t) {
        Json items = Json::array();
        for (const T& value : values) {
            Writer inner;
            members(inner, value);
            items.push_back(inner.take());
        }
        out_[key] = std::move(items);
    }
    Json take() { return std::move(out_); }

  private:
    Json out_;
};

class Reader {
  public:
    static constexpr bool writes = false;
    // `place` names the object in the error: "hello". `known` are members that the caller read itself.
    Reader(const Json& in, std::string place, std::initializer_list<const char*> known = {});

    // Bounds are inclusive.
    template <class T>
    void integer(const char* key, T& value, std::int64_t least = 0,
                 std::int64_t most = static_cast<std::int64_t>(std::min<std::uint64_t>(
                     std::numeric_limits<T>::max(), std::numeric_limits<std::int64_t>::max()))) {
        value = static_cast<T>(bounded(key, least, most));
    }
    void optional_integer(const char* key, std::optional<std::int64_t>& value);
    void optional_real(const char* key, std::optional<double>& value);
    void boolean(const char* key, bool& value);
    void name(const char* key, std::string& value) { value = string(key, most_name_bytes); }
    void text(const char* key, std::string& value) { value = string(key, most_text_bytes); }
    void word(const char* key, std::string& value, std::initializer_list<const char*> allowed);
    void object(const char* key, Json& value);
    void anything(const char* key, Json& value);
    void text_map(const char* key, std::map<std::string, std::string>& value);
    void text_list(const char* key, std::vector<std::string>& value);
    template <class T> void part(const char* key, T& value) {
        const Json* json = member(key, &Json::is_object, "an object");
        if (!json) return;
        Reader inner(*json, place_ + "." + key);
        members(inner, value);
        adopt(inner);
    }
    template <class T> void list(const char* key, std::vector<T>& values, std::size_t most) {
        const Json* json = member(key, &Json::is_array, "an array");
        if (!json) return;
        if (json->size() > most) return fault(key, "has more than " + std::to_string(most) + " items");
        values.clear();
        for (std::size_t i = 0; i < json->size() && fault_.empty(); ++i) {
            Reader inner((*json)[i], place_ + "." + key + "[" + std::to_string(i) + "]");
            members(inner, values.emplace_back());
            adopt(inner);
        }
    }
    Result<void> finish(); // the first fault, or an unknown member

  private:
    using Is = bool (Json::*)() const noexcept;
    const Json* member(const char* key, Is is, const char* wanted); // nullptr: the fault is noted
    std::int64_t bounded(const char* key, std::int64_t least, std::int64_t most);
    std::string string(const char* key, std::size_t most);
    void fault(const std::string& key, const std::string& why);
    void adopt(Reader& inner);

    const Json& in_;
    std::string place_;
    std::set<std::string> seen_;
    std::string fault_;
};

} // namespace perfrig::protocol
