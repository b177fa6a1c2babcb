// SPDX-License-Identifier: Apache-2.0
// The functions that paceline/_core.py calls through ctypes. The library uses nothing of Python.h but the few functions
// below, which every CPython exports under the same names, so that one build serves all versions of Python.
//
// A function that makes something returns null where it fails, and paceline_error() has the message then. A function
// with an index returns null after the last text.
#include <array>
#include <atomic>
#include <optional>

#include "analysis/load/load.h"
#include "analysis/load/run_paths.h"
#include "analysis/python/run_tables.h"
#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "analysis/text/text_output.h"

extern "C" {
struct PyObject;
PyObject* PyCapsule_New(void* pointer, const char* name, void (*destructor)(PyObject*));
void* PyCapsule_GetPointer(PyObject* capsule, const char* name);
const char* PyCapsule_GetName(PyObject* capsule);
void PyErr_Clear();
int PyErr_CheckSignals();
int PyGILState_Ensure();
void PyGILState_Release(int state);
}

namespace paceline::python {
namespace {

using Run = std::shared_ptr<const LoadedRun>;

struct Interrupted {};

// Why the last function of this thread failed; nothing after Ctrl-C.
thread_local std::optional<std::string> last_error;

template <class Work>
auto guarded(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const Interrupted&) {
    last_error.reset();
  } catch (const std::bad_alloc&) {
    last_error = "not enough memory";
  } catch (const std::exception& error) {
    last_error = analysis::valid_utf8(error.what());
  }
  return nullptr;
}

// Whether Ctrl-C was pressed. Any thread may ask, but Python runs its signal handlers in its main thread alone.
bool signalled() {
  const int state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;
  if (raised) PyErr_Clear();  // _core.py raises KeyboardInterrupt
  PyGILState_Release(state);
  return raised;
}

void check_signals() {
  if (signalled()) throw Interrupted();
}

Run load(const char* path, const char* iterations, const char* processes) {
  analysis::RunPaths run(path);
  const auto choice = analysis::processes_named(processes);
  if (!choice) throw Error("processes: expected \"auto\", \"ranks\" or \"one\"");
  run.processes = *choice;
  std::atomic<bool> interrupted{false};
  const auto progress = [&](double) {
    if (signalled()) interrupted = true;
    return !interrupted;
  };
  try {
    analysis::Trace trace = analysis::load_run(run, analysis::Progress(progress));
    trace.iteration_name = iterations;
    return std::make_shared<const LoadedRun>(std::move(trace), path);
  } catch (const Error&) {
    if (interrupted) throw Interrupted();
    throw;
  }
}

// What a reader has not taken is released with the capsule.
template <class Part>
void destroy_part(PyObject* capsule) {
  auto* part = static_cast<Part*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
  if (part == nullptr) return PyErr_Clear();
  if (part->release != nullptr) part->release(part);
  delete part;
}

}  // namespace

// json, text, markdown, csv, html.
using ReportTexts = std::array<std::string, 5>;

}  // namespace paceline::python

#pragma GCC visibility push(default)
extern "C" {
using namespace paceline;
using namespace paceline::python;

const char* paceline_version() { return PACELINE_VERSION; }
const char* paceline_error() { return last_error ? last_error->c_str() : nullptr; }

Run* paceline_load(const char* path, const char* iterations, const char* processes) {
  return guarded([&] { return new Run(load(path, iterations, processes)); });
}
std::size_t paceline_run_ranks(const Run* run) { return (*run)->trace().ranks.size(); }
std::int64_t paceline_run_span_ns(const Run* run) { return (*run)->trace().span_ns(); }
const char* paceline_run_note(const Run* run, std::size_t index) {
  const auto& notes = (*run)->trace().notes;
  return index < notes.size() ? notes[index].c_str() : nullptr;
}
void paceline_free_run(Run* run) { delete run; }

ReportTexts* paceline_report(const Run* const* runs, std::size_t count) {
  return guarded([&] {
    std::vector<analysis::RunAnalysis> analyses;
    for (std::size_t i = 0; i < count; ++i) {
      analyses.push_back(analysis::analyse_run((*runs[i])->trace(), (*runs[i])->path()));
    }
    const analysis::Report report = analysis::build_report(std::move(analyses));
    return new ReportTexts{analysis::render_json(report), analysis::render_text(report),
                           analysis::render_markdown(report), analysis::render_csv(report),
                           analysis::render_html(report)};
  });
}
const char* paceline_report_text(const ReportTexts* report, std::size_t index) {
  return index < report->size() ? (*report)[index].c_str() : nullptr;
}
void paceline_free_report(ReportTexts* report) { delete report; }

Table* paceline_table(const Run* run, const char* name) {
  return guarded([&] {
    return new Table(std::string_view(name) == "slices" ? slices_table(*run) : named_table(**run, name, check_signals));
  });
}
Table* paceline_query(const Run* run, const char* sql) {
  return guarded([&] { return new Table(query_table(**run, sql, check_signals)); });
}
std::int64_t paceline_table_rows(const Table* table) { return table->rows; }
const char* paceline_table_column(const Table* table, std::size_t index) {
  return index < table->fields.size() ? table->fields[index].name.c_str() : nullptr;
}
void paceline_free_table(Table* table) { delete table; }

// These make Python's objects: the caller holds the lock of the interpreter.
PyObject* paceline_table_stream(const Table* table) {
  auto stream = std::make_unique<ArrowArrayStream>();
  export_stream(table->open(), *stream);
  return PyCapsule_New(stream.release(), "arrow_array_stream", destroy_part<ArrowArrayStream>);
}
PyObject* paceline_table_schema(const Table* table) {
  auto schema = std::make_unique<ArrowSchema>();
  export_schema(table->fields, *schema);
  return PyCapsule_New(schema.release(), "arrow_schema", destroy_part<ArrowSchema>);
}
}
#pragma GCC visibility pop
