// SPDX-License-Identifier: Apache-2.0
// One function for each section; a new section is its file in sections/, its name here and in the list in sections.cpp.
#pragma once

#include "analysis/report/section.h"

namespace paceline::analysis::sections {

// About one run.
RunSection main_figures();  // wall time, throughput, iterations, accuracy
RunSection breakdown();     // phases, and which of them shrink when ranks are added
RunSection iterations();
RunSection collectives();
RunSection waiting();       // who waits for whom, and ranks that are slow beyond chance
RunSection interludes();    // evaluations and checkpoints of one rank, for which the others wait
RunSection causes();        // why time was lost
RunSection heat_map();      // which rank is late in which iteration
RunSection messages();      // who sends to whom
RunSection links();         // slow links, and collectives too small for them
RunSection efficiencies();  // POP
RunSection critical_path();
RunSection what_if();    // predictions, at the end of a run's tables
RunSection overlap();    // communication during compute
RunSection pipeline();   // stages of a network that wait for each other
RunSection exchanges();  // sharded optimizers and compressed gradients
RunSection gpu();
RunSection ranges();   // time in ranges, layers and calls, and the device time of what they launched
RunSection layers();   // their time beside the machine's limits
RunSection machine();  // CPUs, limits and GPUs that hold the job up
RunSection accuracy();
RunSection hangs();   // collectives that some ranks never entered, and ranks that did not end by themselves
RunSection losses();  // what a trace does not cover

// About several runs.
ScalingSection speed_up();
ScalingSection weak_scaling();
ScalingSection comparisons();  // equal rank counts side by side
ScalingSection lost_time();    // what keeps the speed-up from N
ScalingSection waterfall();    // the same from N × down to the measured speed-up
ScalingSection serial_share();
ScalingSection time_model();
ScalingSection law_choice();  // by cross-validation, with predictions for more ranks
ScalingSection accuracy_lost();
ScalingSection noise();  // what the intervals rest on

}  // namespace paceline::analysis::sections
