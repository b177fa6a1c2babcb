// SPDX-License-Identifier: Apache-2.0
// The kinds of tables at the bottom of the page, each in a file of its own.
#pragma once

#include "viewer/panels/table_panel.h"

namespace paceline::viewer {

TableKind ranks_table_kind();          // waits and iterations of each rank
TableKind collectives_table_kind();    // each collective: waiting, transfer, last rank
TableKind names_table_kind();          // the slices of each name: count, total, median
TableKind selected_table_kind();       // the selected slices, by name
TableKind messages_table_kind();       // each message from rank to rank
TableKind hits_table_kind();           // what the search found
TableKind critical_path_table_kind();  // the stretches that decided how long the run took

}  // namespace paceline::viewer
