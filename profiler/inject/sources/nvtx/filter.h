// SPDX-License-Identifier: Apache-2.0
// The filter of NVTX domains and categories (`paceline record --nvtx-…`).
#pragma once

#include <cstdint>
#include <string_view>

namespace paceline::inject {

// Reads the environment (record/environment.h) at the first call. The caller blocks its signals; another thread waits
// for it only for as long as the reading takes, which needs no lock.
void read_nvtx_filter();
// Records the filter as settings, for each file.
void record_nvtx_filter();

// True if events of the domain with this name are left out. The default domain is called "default".
bool leaves_out_domain(std::string_view name);

// True if categories are filtered at all.
extern bool filters_categories;

// Called when a category of this domain gets a name.
void filter_category(std::uint16_t domain, std::uint16_t category, std::string_view name);

// True if marks and ranges of this category are left out. Cost: a probe of a small table.
bool leaves_out_category(std::uint16_t domain, std::uint16_t category);

// A pop does not name its category. Each thread therefore remembers which of its open pushes were left out, for four
// domains and 64 levels; beyond that, events are recorded. The first function returns true if this push is left out,
// the second one if the push that belongs to this pop was left out.
bool leaves_out_push(std::uint16_t domain, std::uint16_t category);
bool leaves_out_pop(std::uint16_t domain);

// In a forked child: resets a lock that another thread of the parent may have held.
void reset_nvtx_filter_in_child();

}  // namespace paceline::inject
