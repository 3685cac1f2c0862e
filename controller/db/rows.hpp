// The rows a statement returned. Access is by row and column number, checked by the server's type only: asking for
// what a column is not is a bug and throws std::logic_error, as does reading a null without asking is_null first.
#pragma once

#include "common/base/json.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct pg_result;

namespace perfrig::db {

class Rows {
  public:
    Rows() = default;
    explicit Rows(pg_result* owned);

    int size() const;
    bool empty() const { return size() == 0; }
    std::int64_t affected() const;    // rows that an insert, update or delete touched
    std::string_view command() const; // the server's tag: "INSERT 0 3", "ROLLBACK"

    bool is_null(int row, int column) const;
    std::string_view text(int row, int column) const; // of a text column or any column in text format
    std::int64_t integer(int row, int column) const;
    double real(int row, int column) const;
    bool boolean(int row, int column) const;
    std::string bytes(int row, int column) const; // bytea
    Json json(int row, int column) const;
    std::vector<std::int64_t> integers(int row, int column) const; // bigint[], binary results only
    std::vector<double> reals(int row, int column) const;          // double precision[], binary results only

    std::optional<std::int64_t> maybe_integer(int row, int column) const;
    std::optional<double> maybe_real(int row, int column) const;
    std::int64_t id(int row, int column) const { return maybe_integer(row, column).value_or(0); } // 0: null

  private:
    std::shared_ptr<pg_result> result_;
};

} // namespace perfrig::db
