// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/kineto/json_tokens.h"

#include <simdjson.h>

#include <algorithm>
#include <array>

namespace paceline::analysis::kineto {
namespace {

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && Tokens::is_space(text[at])) ++at;
  return at;
}

// True if a quote at text[quote] ends a string, by what follows it.
bool ends_string(std::string_view text, std::size_t quote) {
  const std::size_t next = skip_space(text, quote + 1);
  if (next >= text.size()) return true;
  if (text[next] == ':' || text[next] == '}' || text[next] == ']') return true;
  if (text[next] != ',') return false;
  const std::size_t after = skip_space(text, next + 1);
  constexpr std::string_view value_begins = "\"-0123456789{[tfnNI";
  return after >= text.size() || value_begins.find(text[after]) != value_begins.npos;
}

// The place of the quote that ends the string whose opening quote is at text[quote]; the text's size if there is none.
std::size_t string_end(std::string_view text, std::size_t quote) {
  for (std::size_t at = quote + 1; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"' && ends_string(text, at)) {
      return at;
    }
  }
  return text.size();
}

// The place of the character before text[at], white space aside, if it is `c`; else npos.
std::size_t follows(std::string_view text, std::size_t at, char c) {
  while (at > 0 && Tokens::is_space(text[at - 1])) --at;
  return at > 0 && text[at - 1] == c ? at - 1 : text.npos;
}

bool follows_event(std::string_view text, std::size_t brace) {
  const std::size_t comma = follows(text, brace, ',');
  return comma != text.npos && follows(text, comma, '}') != text.npos;
}

}  // namespace

struct Tokenizer::Simdjson {
  std::unique_ptr<simdjson::internal::dom_parser_implementation> parser;
  std::size_t capacity = 0;
};

Tokenizer::Tokenizer() : simdjson_(std::make_unique<Simdjson>()) {}
Tokenizer::~Tokenizer() = default;

Tokens Tokenizer::tokens(std::string_view text) {
  Tokens tokens{text, {}};
  if (text.empty() || text.size() >= simdjson::SIMDJSON_MAXSIZE_BYTES) return tokens;
  if (text.size() > simdjson_->capacity) {
    simdjson_->capacity = text.size();
    if (simdjson::get_active_implementation()->create_dom_parser_implementation(text.size(), 1, simdjson_->parser) !=
        simdjson::SUCCESS) {
      simdjson_->capacity = 0;
      return tokens;
    }
  }
  simdjson_->parser->n_structural_indexes = 0;
  const simdjson::error_code error = simdjson_->parser->stage1(reinterpret_cast<const std::uint8_t*>(text.data()),
                                                               text.size(), simdjson::stage1_mode::regular);
  if (error != simdjson::SUCCESS && error != simdjson::UTF8_ERROR) return tokens;
  tokens.at = {simdjson_->parser->structural_indexes.get(), simdjson_->parser->n_structural_indexes};
  return tokens;
}

bool event_begins(std::string_view text, std::size_t brace) {
  std::size_t at = skip_space(text, brace + 1);
  if (at >= text.size() || text[at] != '"') return false;
  const std::string_view key = text.substr(at + 1, 8);
  constexpr std::array<std::string_view, 8> keys{"ph\"", "name\"", "cat\"", "ts\"", "pid\"", "tid\"", "args\"", "id\""};
  return std::ranges::any_of(keys, [&](std::string_view k) { return key.starts_with(k); });
}

std::size_t next_event(std::string_view text, std::size_t from, bool behind_event) {
  for (std::size_t at = text.find('{', from); at != text.npos; at = text.find('{', at + 1)) {
    if (event_begins(text, at) && (behind_event ? follows_event(text, at) : follows(text, at, ',') != text.npos))
      return at;
  }
  return text.npos;
}

Outcome repaired(std::string_view text, std::size_t begin, std::size_t most, std::vector<std::uint32_t>& tokens,
                 std::size_t& end) {
  // An event that seems to begin inside this one is an argument, or this one lacks a bracket. An argument's end is
  // near.
  constexpr std::size_t most_inside = 4096;
  tokens.clear();
  std::uint64_t depth = 0;
  std::size_t inside = text.npos;  // where another event seems to begin
  const std::size_t bound = begin + std::min(most, text.size() - begin);
  for (std::size_t at = begin; at < bound;) {
    const char c = text[at];
    end = at;
    if (Tokens::is_space(c)) {
      ++at;
      continue;
    }
    if (inside != text.npos && at - inside > most_inside) return Outcome::malformed;
    tokens.push_back(static_cast<std::uint32_t>(at));
    switch (c) {
      case '{':
        if (depth > 0 && inside == text.npos && follows_event(text, at) && event_begins(text, at)) inside = at;
        [[fallthrough]];
      case '[':
        ++depth, ++at;
        break;
      case '}':
      case ']':
        ++at;
        if (--depth == 0) {
          end = at;
          return Outcome::whole;
        }
        break;
      case ':':
      case ',':
        ++at;
        break;
      case '"':
        at = string_end(text, at) + 1;
        break;
      default:
        while (at < text.size() && !Tokens::is_space(text[at]) &&
               std::string_view("{}[]:,\"").find(text[at]) == std::string_view::npos) {
          ++at;
        }
    }
  }
  end = bound;
  if (bound < text.size()) return Outcome::malformed;
  return inside == text.npos || text.size() - inside <= most_inside ? Outcome::incomplete : Outcome::malformed;
}

}  // namespace paceline::analysis::kineto
