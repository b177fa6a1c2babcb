// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/tab_page.h"

#include <vector>

namespace paceline::viewer {

void TabPage::show_waiting(Document& document, ViewState& state) {
  connect(&document, &Document::analysed, this, [&document, &state] {
    std::vector<std::int64_t> caused;
    for (const auto& waits : document.insight()->figures.waits) caused.push_back(waits.caused_ns);
    state.arrangement.set_waiting_caused(caused);
  });
}

}  // namespace paceline::viewer
