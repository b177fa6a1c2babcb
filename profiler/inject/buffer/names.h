// SPDX-License-Identifier: Apache-2.0
// Texts of events. Each text is recorded once, and events refer to it by a number.
//
// Looking up a known text takes no lock: a hash, a probe and a comparison (about 15 ns for 20 letters). A new text
// takes a lock and records a `name` event.
#pragma once

#include <stddef.h>

#include <cstdint>
#include <string_view>

namespace paceline::inject {

inline constexpr std::size_t longest_name = 32 * 1024;  // bytes; longer texts are cut and end in "…"
inline constexpr std::uint32_t most_names = 1u << 18;   // later names share one, and their uses are counted
// A name of an iteration gets another one, by which iterations are still recognised.
inline constexpr char overflow_name[] = "(more names than can be kept)";
inline constexpr char overflow_iteration_name[] = "iteration (more names than can be kept)";

// The number of a text, from 1; 0 for the empty text. Needs an open file.
std::uint32_t intern(std::string_view text);
std::uint32_t intern(const wchar_t* text);  // converted to UTF-8

// Has `listener` called when a text has received a number, before an event with that number is written. The lock of the
// names is held: it must not call intern().
using NameListener = void(std::uint32_t id, std::string_view text);
void set_name_listener(NameListener* listener);

// The text of a number, "" if there is none.
std::string_view name_of(std::uint32_t id);

// For a forked child, where the numbers go on. The first resets a lock that another thread of the parent may have held,
// and the second records all names in the child's file.
void reset_names_in_child();
void repeat_names();
// Records a `setting` event: a fact about the run, as a key and a value.
void record_setting(std::string_view key, std::string_view value);

// Converts a wide text to UTF-8 and cuts it after whole characters to the size of `out`. Invalid characters become
// U+FFFD.
inline constexpr std::size_t longest_wide = 1024;
std::string_view to_utf8(const wchar_t* text, char (&out)[longest_wide]);

}  // namespace paceline::inject
