// SPDX-License-Identifier: Apache-2.0
// The report as a document that is laid out line by line as it comes into view, so that a report of 1,000 ranks opens
// as fast as a short one.
#pragma once

#include <QFont>
#include <QTextDocument>
#include <memory>

#include "analysis/report/report.h"

namespace paceline::viewer {

// For a QPlainTextEdit: the parts of the report's outline, one after the other. Tables and bars have the fixed-pitch
// font `fixed`, in the size of the other one. Columns of tables are aligned with spaces, and their lines are not
// wrapped. May be called in any thread. Cost: linear.
std::unique_ptr<QTextDocument> report_document(const analysis::Report& report, const QFont& font, QFont fixed);

}  // namespace paceline::viewer
