// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM stop the run after the current iteration. A second signal ends the process at once.
#pragma once

namespace paceline::train {

void catch_interrupts();

// The number of the signal that was received; 0 if none.
int interrupt_received();

}  // namespace paceline::train
