// SPDX-License-Identifier: Apache-2.0
// How tables and sentences are printed on a terminal and in Markdown.
#pragma once

#include <string>
#include <vector>

#include "analysis/report/section.h"

namespace paceline::analysis {

// Breaks lines at spaces before `columns`; the first line starts with `first`, further lines with the indent. Ends in a
// newline.
std::string wrapped(const std::string& text, std::size_t columns, const std::string& first, const std::string& indent);

// Appends a table for the terminal: a title, aligned columns, no note. A table that is wider than `columns` shortens
// the texts of its second column, to 24 characters at least: they lose what stands before ": ", then their middle.
void print_table(const Table& table, std::string& out, std::size_t columns = std::string::npos);

// Draws the bars of a chart with characters: its title, and a line for each bar. Of many bars only the largest are
// drawn.
std::string bars_text(const Chart& chart);

// Appends tables in Markdown, each with a heading of the third level and its note.
void print_markdown_tables(const std::vector<Table>& tables, std::string& out);

// Escapes what Markdown would take for markup in a cell or sentence.
std::string markdown_escaped(const std::string& text);

}  // namespace paceline::analysis
