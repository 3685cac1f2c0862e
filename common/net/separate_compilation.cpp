// The one unit that holds Asio's and Beast's non-template code (see the definitions at common/net in CMakeLists.txt).
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
