// Texts of events, each recorded once and named by a number afterwards.
//
// Looking up a text that is known takes no lock: a hash, a probe, a comparison (about 15 ns for 20 letters). A new
// text takes a lock and records a `name` event.
#pragma once

#include <stddef.h>

#include <cstdint>
#include <string_view>

namespace paceline::inject {

inline constexpr std::size_t longest_name = 32 * 1024;  // longer texts are cut, and end in "…"
inline constexpr std::uint32_t most_names = 1u << 18;   // later ones share one name, and their uses are counted
inline constexpr char overflow_name[] = "(more names than can be kept)";

// The number of a text, from 1; 0 for the empty text. Needs an open file.
std::uint32_t intern(std::string_view text);
std::uint32_t intern(const wchar_t* text);  // converted to UTF-8

// In a forked child, where the numbers go on: lets go of a lock that another thread of the parent may have held; says
// all names again, into the child's file.
void reset_names_in_child();
void repeat_names();
// A `setting` event: a fact that was learned while running.
void record_setting(std::string_view key, std::string_view value);

// A wide text as UTF-8, cut after whole characters to what fits into `out`. What is no character becomes U+FFFD.
inline constexpr std::size_t longest_wide = 1024;
std::string_view to_utf8(const wchar_t* text, char (&out)[longest_wide]);

}  // namespace paceline::inject
