// What every doctest file includes: doctest, and how a Result prints when a check on it fails.
#pragma once

#include "common/base/result.hpp"

#include <doctest/doctest.h>

namespace doctest {
template <class T> struct StringMaker<boost::system::result<T, perfrig::Error>> {
    static String convert(const boost::system::result<T, perfrig::Error>& r) {
        return r ? String("a value") : String(("error: " + r.error().text()).c_str());
    }
};
} // namespace doctest
