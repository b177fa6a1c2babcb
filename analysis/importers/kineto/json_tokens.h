// SPDX-License-Identifier: Apache-2.0
// The tokens of a JSON text: where its braces, brackets, colons, commas, strings and scalars begin.
//
// simdjson's first stage finds them at several GB/s, but it needs a text whose quotes are in order. A text that is
// damaged is read object by object by `repaired`, which guesses where a string ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace paceline::analysis::kineto {

struct Tokens {
  std::string_view text;
  std::span<const std::uint32_t> at;  // rising places in the text, one for each token

  char first(std::size_t i) const { return text[at[i]]; }
  // The text of token i, a string or a scalar, without the white space behind it. Needs a token behind it.
  std::string_view content(std::size_t i) const {
    std::size_t end = at[i + 1];
    while (end > at[i] + 1 && is_space(text[end - 1])) --end;
    return text.substr(at[i], end - at[i]);
  }
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
};

// Runs simdjson's first stage. Keeps its memory for the next text.
class Tokenizer {
 public:
  Tokenizer();
  ~Tokenizer();

  // The tokens, valid until the next call. Nothing where the quotes of the text are not in order or where it has
  // control characters in its strings. Bad UTF-8 does no harm. Texts up to 4 GiB.
  Tokens tokens(std::string_view text);

 private:
  struct Simdjson;
  std::unique_ptr<Simdjson> simdjson_;
};

enum class Outcome : std::uint8_t { whole, incomplete, malformed };

// The tokens of the object that begins at text[begin], which is '{', guessed: a quote ends a string only if a colon, a
// comma or a closing bracket follows that fits. `end` becomes the place behind the object, or how far the reading came.
// Malformed where it seems to lack a bracket, because other events begin inside it, and where it is longer than `most`
// bytes. Linear, without recursion.
Outcome repaired(std::string_view text, std::size_t begin, std::size_t most, std::vector<std::uint32_t>& tokens,
                 std::size_t& end);

// True if an event begins at text[brace]: a '{' followed by a key that events begin with.
bool event_begins(std::string_view text, std::size_t brace);

// The first place from `from` on at which an event begins behind a comma, and with `behind_event` behind a closing
// brace and a comma; npos where there is none.
std::size_t next_event(std::string_view text, std::size_t from, bool behind_event);

}  // namespace paceline::analysis::kineto
