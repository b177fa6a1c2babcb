// SPDX-License-Identifier: Apache-2.0
// The fixed parts of the HTML report: files that are built into the program.
#pragma once

#include <string_view>

namespace paceline::analysis {

std::string_view html_style();         // page.css
std::string_view html_script();        // page.js: draws the array `charts`
std::string_view html_table_script();  // page_tables.js: sorts and filters tables, and needs no charts

// Chart.js as it was found when this was built; empty where it was not: then the page has its tables only.
std::string_view html_chart_library();

}  // namespace paceline::analysis
