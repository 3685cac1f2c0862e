#include "common/experiment/yaml_tree.hpp"

#include "common/experiment/yaml_source.hpp"

#include <sstream>
#include <unordered_map>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace perfrig {

const YamlEntry* YamlNode::entry(std::string_view key) const {
    for (const YamlEntry& e : entries)
        if (e.key == key) return &e;
    return nullptr;
}
const YamlNode* YamlNode::find(std::string_view key) const {
    const YamlEntry* e = entry(key);
    return e ? &e->value : nullptr;
}
YamlNode* YamlNode::find(std::string_view key) { return const_cast<YamlNode*>(std::as_const(*this).find(key)); }

YamlNode YamlNode::scalar(std::string text, bool quoted, YamlMark mark) {
    YamlNode node;
    node.kind = Kind::scalar;
    node.text = std::move(text);
    node.quoted = quoted;
    node.mark = mark;
    return node;
}

namespace {

struct Stop {}; // thrown through the parser when a fault makes going on pointless

class TreeBuilder final : public YAML::EventHandler {
  public:
    TreeBuilder(const YamlSource& source, const YamlLimits& limits) : source_(source), limits_(limits) {}

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (++documents_ < 2) return;
        report(source_.mark(mark.pos), {}, "a second document begins here", "put it in a file of its own");
        throw Stop{};
    }
    void OnDocumentEnd() override {}
    void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
        report(source_.mark(mark.pos), path(), "anchors (&" + name + ") are not taken here", "write the value out");
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
        report(source_.mark(mark.pos), path(), "aliases (*name) are not taken here", "write the value out");
        YamlNode node;
        node.mark = source_.mark(mark.pos);
        add(std::move(node));
    }
    void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
        YamlNode node;
        node.mark = source_.mark(mark.pos);
        const char first = source_.at(mark.pos);
        if (first == '!') report(node.mark, path(), "tags (!name) are not taken here", "leave it out");
        // A value that isn't there has no place of its own: the parser gives the next token's. Its key has one.
        else if (first != '~' && first != 'n' && first != 'N' && !frames_.empty() && frames_.back().has_key)
            node.mark = frames_.back().key_mark;
        add(std::move(node));
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& value) override {
        const char first = source_.at(mark.pos);
        const bool quoted = tag != "?";
        YamlNode node = YamlNode::scalar(value, quoted, source_.mark(mark.pos));
        if (first == '|') node.block_indent = source_.block_indent(mark.pos);
        if (first == '!') report(node.mark, path(), "tags (!name) are not taken here", "leave it out or use quotes");
        if ((first == '"' || first == '\'') && !source_.quote_is_closed(mark.pos)) {
            report(node.mark, path(), "this quote is never closed", std::string("end the value with ") + first);
            throw Stop{};
        }
        if (value.find('\0') != std::string::npos)
            report(node.mark, path(), "the value holds a zero byte", "take \\0 out");
        add(std::move(node));
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                         YAML::EmitterStyle::value) override {
        open(YamlNode::Kind::list, mark, tag);
    }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                    YAML::EmitterStyle::value) override {
        open(YamlNode::Kind::map, mark, tag);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapEnd() override { close(); }

    // What the parser's exception means, in words for the person who wrote the file.
    void broken(const YAML::Exception& error) {
        const std::optional<YamlMark> opened = frames_.empty() ? std::nullopt : std::optional(frames_.back().node.mark);
        Fault fault = source_.explain(error.mark.pos, error.mark.line, error.msg, opened);
        fault.path = path();
        faults.push_back(std::move(fault));
    }

    std::vector<Fault> faults;
    YamlNode root;

  private:
    struct Frame {
        YamlNode node;
        bool has_key = false;
        std::string key;
        YamlMark key_mark;
        bool drop = false; // a duplicate's value, or a key that is no text: read and forgotten
        std::unordered_map<std::string, YamlMark> seen;
    };

    void report(YamlMark at, std::string where, std::string message, std::string remedy) {
        faults.push_back({at.line, at.column, std::move(where), std::move(message), std::move(remedy)});
        if (faults.size() >= 1000) throw Stop{};
    }

    std::string path() const {
        std::string out;
        for (const Frame& frame : frames_) {
            const std::string part = frame.node.is_list() ? std::to_string(frame.node.items.size()) : frame.key;
            if (!part.empty()) out += (out.empty() ? "" : ".") + part;
        }
        return out;
    }

    void count(YamlMark at) {
        if (++nodes_ <= limits_.most_nodes) return;
        report(at, {}, "more than " + std::to_string(limits_.most_nodes) + " values", "make the file smaller");
        throw Stop{};
    }

    void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag) {
        Frame frame;
        frame.node.kind = kind;
        frame.node.mark = source_.mark(mark.pos);
        count(frame.node.mark);
        if (tag != "?" && !tag.empty())
            report(frame.node.mark, path(), "tags (!name) are not taken here", "leave it out");
        if (static_cast<int>(frames_.size()) >= limits_.deepest_nesting) {
            report(frame.node.mark, {}, "nested deeper than " + std::to_string(limits_.deepest_nesting) + " levels",
                   "flatten it");
            throw Stop{};
        }
        frames_.push_back(std::move(frame));
    }

    void close() {
        YamlNode node = std::move(frames_.back().node);
        frames_.pop_back();
        --nodes_; // counted when it was opened
        add(std::move(node));
    }

    void add(YamlNode node) {
        count(node.mark);
        if (frames_.empty()) {
            root = std::move(node);
            return;
        }
        Frame& top = frames_.back();
        if (top.node.is_list())
            top.node.items.push_back(std::move(node));
        else if (top.has_key)
            add_value(top, std::move(node));
        else
            add_key(top, std::move(node));
    }

    void add_key(Frame& top, YamlNode node) {
        top.has_key = true;
        top.key_mark = node.mark;
        top.key.clear();
        top.drop = false;
        if (!node.is_scalar()) {
            report(node.mark, path(), node.is_null() ? "a key is missing here" : "a key must be plain text", "name it");
            top.drop = true;
            return;
        }
        if (node.text == "<<" && !node.quoted) {
            report(node.mark, path(), "merge keys (<<) are not taken here", "write the values out");
            top.drop = true;
            return;
        }
        const auto [first, added] = top.seen.emplace(node.text, node.mark);
        if (!added) {
            const std::string where = path();
            report(node.mark, where.empty() ? node.text : where + "." + node.text,
                   "duplicate key '" + node.text + "'" + (where.empty() ? "" : " in " + where),
                   "the first one is at line " + std::to_string(first->second.line) + "; keep one of them");
            top.drop = true;
        }
        top.key = std::move(node.text);
    }

    static void add_value(Frame& top, YamlNode node) {
        if (!top.drop) top.node.entries.push_back({std::move(top.key), top.key_mark, std::move(node)});
        top.key.clear();
        top.has_key = false;
    }

    const YamlSource& source_;
    const YamlLimits& limits_;
    std::vector<Frame> frames_;
    std::size_t nodes_ = 0;
    int documents_ = 0;
};

} // namespace

YamlOutcome parse_yaml(std::string_view text, const YamlLimits& limits) {
    YamlOutcome out;
    if (text.size() > limits.most_bytes) {
        out.faults.push_back({0,
                              0,
                              {},
                              "the text has " + std::to_string(text.size()) + " bytes, and at most " +
                                  std::to_string(limits.most_bytes) + " are taken",
                              "make it smaller"});
        return out;
    }
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    const YamlSource source(text);
    if (auto fault = source.bad_bytes()) {
        out.faults.push_back(std::move(*fault));
        return out;
    }
    TreeBuilder builder(source, limits);
    bool whole = false;
    try {
        std::istringstream in{std::string(text)};
        YAML::Parser parser(in);
        while (parser.HandleNextDocument(builder)) {
        }
        whole = true;
    } catch (const Stop&) {
        // its fault is recorded
    } catch (const YAML::Exception& error) { // the library reports by exception alone
        builder.broken(error);
    }
    if (whole) out.tree = std::move(builder.root);
    out.faults = in_order(std::move(builder.faults));
    return out;
}

} // namespace perfrig
