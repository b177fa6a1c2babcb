// The report as a document that is laid out line by line as it comes into view, so that a report of 1,000 ranks opens
// as fast as a short one.
#pragma once

#include <QFont>
#include <QTextDocument>
#include <memory>
#include <string>

namespace paceline::viewer {

// For a QPlainTextEdit. `markdown` is what analysis::render_markdown() writes: headings, paragraphs, lists, tables,
// code and bold words. Tables and code have the fixed-pitch font `fixed`, in the size of the other one. Columns of
// tables are aligned with spaces, and their lines are not wrapped. May be called in any thread. Cost: linear.
std::unique_ptr<QTextDocument> report_document(const std::string& markdown, const QFont& font, QFont fixed);

}  // namespace paceline::viewer
