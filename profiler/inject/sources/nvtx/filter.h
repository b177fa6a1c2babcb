// Which NVTX domains and categories are left out, as `paceline record --nvtx-…` said.
#pragma once

#include <cstdint>
#include <string_view>

namespace paceline::inject {

// Reads the environment (record/environment.h), once, and records what it asks for as settings. Needs an open file.
void read_nvtx_filter();
// Records it again, into a forked child's file.
void repeat_nvtx_filter();

// Whether events of the domain of this name are left out; the default domain is called "default".
bool leaves_out_domain(std::string_view name);

// True if categories are filtered at all.
extern bool filters_categories;

// A category of this domain was given a name.
void filter_category(std::uint16_t domain, std::uint16_t category, std::string_view name);

// Whether a mark or range of this category is left out. A probe of a small table.
bool leaves_out_category(std::uint16_t domain, std::uint16_t category);

// A pop does not say which category it ends, so each thread remembers which of its open pushes were left out: of four
// domains 64 levels deep. What is beyond is recorded. push() returns whether this one is to be left out, pop() whether
// its push was.
bool leaves_out_push(std::uint16_t domain, std::uint16_t category);
bool leaves_out_pop(std::uint16_t domain);

// Lets go of a lock that another thread of the parent may have held.
void reset_nvtx_filter_in_child();

}  // namespace paceline::inject
