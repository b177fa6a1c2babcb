// SIGINT and SIGTERM as a wish to stop after the iteration under way. A second one ends the process at once.
#pragma once

namespace paceline::train {

void catch_interrupts();

// 0, or the signal's number.
int interrupt_received();

}  // namespace paceline::train
