#include "controller/cli/arguments.hpp"

#include "common/experiment/fault.hpp"

#include <algorithm>
#include <charconv>

namespace perfrig::cli {

namespace {

struct FormatName {
    const char* name;
    Format format;
};
constexpr FormatName formats[] = {{"table", Format::table},
                                  {"json", Format::json},
                                  {"csv", Format::csv},
                                  {"csv-runs", Format::csv_runs},
                                  {"markdown", Format::markdown}};

std::string list_of(const std::vector<std::string>& words, const char* between = ", ") {
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
    return out;
}

std::vector<std::string> format_names() {
    std::vector<std::string> names;
    for (const FormatName& known : formats) names.emplace_back(known.name);
    return names;
}

std::string or_nearest(const std::string& word, const std::vector<std::string>& known) {
    const std::string near = nearest_word(word, known);
    return near.empty() ? "" : "; did you mean '" + near + "'?";
}

template <class Number> bool read_whole(const std::string& text, Number& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

// What comes after the last command that was understood.
const CLI::App& last_command(const CLI::App& app) {
    const CLI::App* at = &app;
    while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
    return *at;
}

std::string whole_name(const CLI::App& command) {
    const CLI::App* parent = command.get_parent();
    return parent ? whole_name(*parent) + " " + command.get_name() : "perfrig";
}

std::vector<std::string> commands_of(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(sub->get_name());
    return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::App* at = &command; at; at = at->get_parent()) // a command takes those of all above it too
        for (const CLI::Option* option : at->get_options())
            for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    return names;
}

} // namespace

void add_format(CLI::App& command, Format& format) {
    const auto check = [](std::string& text) -> std::string {
        for (const FormatName& known : formats)
            if (text == known.name) {
                text = std::to_string(static_cast<int>(known.format));
                return {};
            }
        return "there is no format '" + text + "', but " + list_of(format_names()) + or_nearest(text, format_names());
    };
    command.add_option("--format", format, "of the table; csv has a row for each cell, csv-runs one for each run")
        ->transform(CLI::Validator(check, ""))
        ->type_name(list_of(format_names(), "|"));
}

CLI::Option* add_submission_id(CLI::App& command, std::int64_t& id, const std::string& help) {
    const auto check = [](std::string& text) -> std::string {
        std::int64_t value = 0;
        if (read_whole(text, value) && value > 0) return {};
        return "'" + text + "' is no submission's number: see perfrig status";
    };
    return command.add_option("submission", id, help)->check(CLI::Validator(check, ""))->type_name("NUMBER");
}

void add_priority(CLI::App& command, int& priority) {
    const auto check = [](std::string& text) -> std::string {
        int value = 0;
        if (read_whole(text, value) && value >= -1000 && value <= 1000) return {};
        return "'" + text + "' is no whole number from -1000 to 1000";
    };
    command.add_option("--priority", priority, "larger goes first")
        ->check(CLI::Validator(check, ""))
        ->type_name("-1000..1000");
}

std::string refusal_of_arguments(const CLI::App& app, const CLI::ParseError& error) {
    const CLI::App& command = last_command(app);
    const std::string name = whole_name(command);
    const std::vector<std::string> words = app.remaining(true), commands = commands_of(command);
    const auto wrong_option = std::ranges::find_if(words, [](const std::string& w) { return w.starts_with('-'); });
    // Before anything else: its value was taken for a word of its own.
    if (wrong_option != words.end()) {
        const std::string option = wrong_option->substr(0, wrong_option->find('='));
        return name + " has no option " + option + or_nearest(option, options_of(command)) + " (see " + name +
               " --help)";
    }
    if (!commands.empty()) {
        const std::string all = list_of(commands) + " (see " + name + " --help)";
        if (words.empty()) return name + " needs a command: " + all;
        const std::string near = or_nearest(words.front(), commands);
        return name + " has no command '" + words.front() + "'" + (near.empty() ? ", but " + all : near);
    }
    if (!words.empty()) return name + " takes no word '" + words.front() + "' more (see " + name + " --help)";
    return name + ": " + error.what() + " (see " + name + " --help)";
}

} // namespace perfrig::cli
