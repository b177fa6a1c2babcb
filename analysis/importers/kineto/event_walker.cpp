// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/kineto/event_walker.h"

#include "analysis/importers/kineto/interner.h"

namespace paceline::analysis::kineto {
namespace {

class Walker {
 public:
  Walker(const Tokens& tokens, std::size_t& i) : tokens_(tokens), count_(tokens.at.size()), i_(i) {}

  // Calls take(key) for each entry of the object at the present token, and moves behind the object. take() moves behind
  // the value.
  template <class Take>
  Outcome object(Take&& take) {
    if (i_ >= count_) return Outcome::incomplete;
    if (tokens_.first(i_) != '{') return Outcome::malformed;
    ++i_;
    if (i_ < count_ && tokens_.first(i_) == '}') return ++i_, Outcome::whole;
    for (;;) {
      if (i_ + 3 >= count_) return Outcome::incomplete;
      std::string_view key;
      if (!string(key) || tokens_.first(i_) != ':') return Outcome::malformed;
      ++i_;
      if (const Outcome outcome = take(key); outcome != Outcome::whole) return outcome;
      if (i_ >= count_) return Outcome::incomplete;
      const char next = tokens_.first(i_++);
      if (next == '}') return Outcome::whole;
      if (next != ',') return Outcome::malformed;
    }
  }

  // The value at the present token; moves behind it.
  Outcome value(std::string_view& text, char& type) {
    if (i_ + 1 >= count_) return Outcome::incomplete;
    switch (tokens_.first(i_)) {
      case '"':
        type = '"';
        return string(text) ? Outcome::whole : Outcome::malformed;
      case '{':
      case '[':
        type = '{';
        return nested(text);
      case '}':
      case ']':
      case ':':
      case ',':
        return Outcome::malformed;
      default:
        type = '0';
        text = tokens_.content(i_++);
        return Outcome::whole;
    }
  }

  char first() const { return i_ < count_ ? tokens_.first(i_) : '\0'; }

 private:
  bool string(std::string_view& text) {
    if (tokens_.first(i_) != '"') return false;
    text = tokens_.content(i_++);
    if (text.size() < 2 || text.back() != '"') return false;
    text = text.substr(1, text.size() - 2);
    return true;
  }

  Outcome nested(std::string_view& text) {
    const std::size_t begin = i_;
    std::size_t depth = 0;
    do {
      const char c = tokens_.first(i_);
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++i_;
    } while (depth > 0 && i_ < count_);
    if (depth > 0) return Outcome::incomplete;
    text = tokens_.text.substr(tokens_.at[begin], tokens_.at[i_ - 1] + 1 - tokens_.at[begin]);
    return Outcome::whole;
  }

  const Tokens& tokens_;
  const std::size_t count_;
  std::size_t& i_;
};

std::string_view* field_of(std::string_view key, EventFields& fields) {
  switch (key.size()) {
    case 2:
      if (same_text(key, "ph")) return &fields.phase;
      if (same_text(key, "ts")) return &fields.time;
      return same_text(key, "id") ? &fields.id : nullptr;
    case 3:
      if (same_text(key, "pid")) return &fields.process;
      if (same_text(key, "tid")) return &fields.thread;
      if (same_text(key, "dur")) return &fields.duration;
      if (same_text(key, "id2")) return &fields.id;
      return same_text(key, "cat") ? &fields.category : nullptr;
    default:
      return same_text(key, "name") ? &fields.name : nullptr;
  }
}

}  // namespace

Outcome walk_event(const Tokens& tokens, std::size_t& i, EventFields& fields) {
  fields.phase = fields.category = fields.name = fields.process = fields.thread = fields.time = fields.duration =
      fields.id = {};
  fields.argument_count = 0;
  Walker walker(tokens, i);
  return walker.object([&](std::string_view key) {
    if (same_text(key, "args") && walker.first() == '{') {
      return walker.object([&](std::string_view name) {
        EventFields::Argument argument{.key = name, .value = {}};
        const Outcome outcome = walker.value(argument.value, argument.type);
        if (outcome == Outcome::whole && fields.argument_count < EventFields::most_arguments) {
          fields.arguments[fields.argument_count++] = argument;
        }
        return outcome;
      });
    }
    std::string_view ignored;
    std::string_view* const field = field_of(key, fields);
    char type = 0;
    return walker.value(field != nullptr ? *field : ignored, type);
  });
}

}  // namespace paceline::analysis::kineto
