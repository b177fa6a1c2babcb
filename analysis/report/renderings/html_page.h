// SPDX-License-Identifier: Apache-2.0
// What all HTML pages share: the head with the style, tables, charts, and the scripts at the end. A page is one file
// that loads nothing. Tables need no JavaScript; charts are drawn where it is on.
#pragma once

#include <string>
#include <vector>

#include "analysis/report/section.h"

namespace paceline::analysis {

class HtmlPage {
 protected:
  // For text from a trace.
  static std::string escaped(const std::string& text);
  // The same for a sentence, in which backticks enclose code.
  static std::string sentence(const std::string& text);

  void begin(const char* title);  // up to <body>
  void print(const Table& table, bool open);
  // The places of the charts, wide ones last; end() writes the script that draws them.
  void print(const std::vector<Chart>& charts);
  std::string end();  // from </main> on: returns the page

  std::string out_;
  bool defines_ = true;  // the page has the definitions to which columns lead

 private:
  std::vector<nlohmann::json> charts_;
};

}  // namespace paceline::analysis
