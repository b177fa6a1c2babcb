// SPDX-License-Identifier: Apache-2.0
// The folders of /proc whose entries are numbers: threads of a process, processes of the machine.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

namespace paceline::inject {

// Lists the numbers in an open folder, rising; those beyond the room are left out. Does not allocate. Returns how many
// there are in `into`. Cost: about 0.2 µs a number.
std::size_t list_numbers(int folder, std::span<pid_t> into);

}  // namespace paceline::inject
