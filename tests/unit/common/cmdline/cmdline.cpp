#include "common/cmdline/cmdline.hpp"

#include "tests/support/doctest.hpp"

using namespace perfrig;

TEST_CASE("a command line is read as the kernel reads it") {
    const auto line =
        parse_kernel_command_line("root=/dev/sda1 quiet  dyndbg=\"file a.c +p\" \"foo=b c\" empty= -- single a=b\n");
    REQUIRE(line.args.size() == 5);
    CHECK(line.args[0].value == "/dev/sda1");
    CHECK_FALSE(line.args[1].value);
    CHECK(line.args[2].value == "file a.c +p");
    CHECK(line.args[3].name == "foo");
    CHECK(line.args[3].value == "b c");
    CHECK(line.args[4].value == "");
    CHECK(line.init_args == std::vector<std::string>{"single", "a=b"});
}

TEST_CASE("an unbalanced quote runs to the end, and an empty line holds nothing") {
    CHECK(parse_kernel_command_line("").args.empty());
    CHECK(parse_kernel_command_line("  \n").args.empty());
    const auto line = parse_kernel_command_line("a=\"b c d");
    REQUIRE(line.args.size() == 1);
    CHECK(line.args[0].value == "b c d");
    CHECK(parse_kernel_command_line("\"").args.size() == 1);
    CHECK(parse_kernel_command_line("=x").args.at(0).name == "=x");
}

TEST_CASE("wanted parameters are equal, different, missing or unwanted, in plain words") {
    const auto line = parse_kernel_command_line("spectre-v2_user=auto mitigations=off quiet mitigations=auto");
    const auto all = compare_kernel_args({{"mitigations", "auto"},
                                          {"nosmt", ""},
                                          {"quiet", std::nullopt},
                                          {"spectre_v2_user", "on"},
                                          {"debug", std::nullopt}},
                                         line);
    REQUIRE(all.size() == 5);
    CHECK(all[0].name == "debug");
    CHECK(all[0].state == KernelArgState::equal);
    CHECK(all[1].state == KernelArgState::equal); // the last of two counts
    CHECK(all[1].found.size() == 2);
    CHECK(all[2].state == KernelArgState::missing);
    CHECK(all[2].text == "nosmt: wanted the bare flag, the kernel was booted without it");
    CHECK(all[3].state == KernelArgState::unwanted);
    CHECK(all[4].state == KernelArgState::differs);
    CHECK(all[4].text == "spectre_v2_user: wanted on, the kernel was booted with auto");
}

TEST_CASE("an earlier value does not satisfy, except for parameters that add up") {
    CHECK(kernel_arg_differences({{"mitigations", "off"}}, "mitigations=off mitigations=auto").size() == 1);
    CHECK(kernel_arg_differences({{"console", "ttyS0"}}, "console=ttyS0 console=tty0").empty());
}

TEST_CASE("what follows -- belongs to init and is not found") {
    CHECK(kernel_arg_differences({{"nosmt", ""}}, "quiet -- nosmt").size() == 1);
    CHECK(kernel_arg_differences({{"nosmt", std::nullopt}}, "quiet -- nosmt").empty());
}
