// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/renderings/html_parts.h"

// A file's text, put into the program by the assembler; both names are local to this object.
#define PACELINE_EMBED(symbol, path)                                                                          \
  __asm__(".pushsection .rodata\n" #symbol "_begin:\n.incbin \"" path "\"\n" #symbol "_end:\n.popsection\n"); \
  extern "C" __attribute__((visibility("hidden"))) const char symbol##_begin[], symbol##_end[]

__asm__("# " PACELINE_PAGE_CONTENTS);  // a comment, by which a compiler cache tells apart what is embedded below

PACELINE_EMBED(paceline_page_css, PACELINE_PAGE_CSS);
PACELINE_EMBED(paceline_page_js, PACELINE_PAGE_JS);
PACELINE_EMBED(paceline_page_tables_js, PACELINE_PAGE_TABLES_JS);
#ifdef PACELINE_CHART_JS
PACELINE_EMBED(paceline_chart_js, PACELINE_CHART_JS);
#endif

namespace paceline::analysis {
namespace {

std::string_view between(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }

}  // namespace

std::string_view html_style() { return between(paceline_page_css_begin, paceline_page_css_end); }
std::string_view html_script() { return between(paceline_page_js_begin, paceline_page_js_end); }

std::string_view html_table_script() { return between(paceline_page_tables_js_begin, paceline_page_tables_js_end); }

std::string_view html_chart_library() {
#ifdef PACELINE_CHART_JS
  return between(paceline_chart_js_begin, paceline_chart_js_end);
#else
  return {};
#endif
}

}  // namespace paceline::analysis
