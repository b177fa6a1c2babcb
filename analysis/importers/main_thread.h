// SPDX-License-Identifier: Apache-2.0
// Which thread of a rank is its main thread, for trace formats that do not name it.
#pragma once

#include "analysis/trace/trace.h"

namespace paceline::analysis {

// Makes one track the main thread of each rank that has none, and labels it "main thread": the one with the most
// iterations, else the thread whose number is the process's, else the one with the most time in outermost slices.
// Threads without a number do not count. Cost: linear in the slices of the threads.
void choose_main_threads(Trace& trace);

}  // namespace paceline::analysis
