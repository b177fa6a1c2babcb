// SPDX-License-Identifier: Apache-2.0
// The Python module paceline._core. The package around it is in paceline/.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>

#include "analysis/load/load.h"
#include "analysis/python/run_tables.h"
#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "profiler/format/error.h"

namespace nb = nanobind;

namespace paceline::python {
namespace {

// A run as Python holds it. Tables share the run and not this object, so that any thread may release them, without the
// lock of the interpreter.
struct RunHandle {
  std::shared_ptr<const LoadedRun> run;
};

// Ctrl-C in Python ends long work: throws KeyboardInterrupt.
void check_signals() {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

RunHandle load(const std::string& path, const std::string& iterations) {
  std::atomic<bool> interrupted{false};
  // Threads of the loader call this, and only the main thread of Python sees signals.
  const auto progress = [&](double) {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) {
      PyErr_Clear();
      interrupted = true;
    }
    return !interrupted;
  };
  const nb::gil_scoped_release released;
  try {
    analysis::Trace trace = analysis::load_run(path, analysis::Progress(progress));
    trace.iteration_name = iterations;
    return {std::make_shared<const LoadedRun>(std::move(trace), path)};
  } catch (const Error&) {
    if (!interrupted) throw;
  }
  const nb::gil_scoped_acquire gil;
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw nb::python_error();
}

struct ReportTexts {
  std::string json, text, markdown, csv, html;
};

ReportTexts report(const std::vector<RunHandle>& runs) {
  const nb::gil_scoped_release released;
  std::vector<analysis::RunAnalysis> analyses;
  for (const auto& [run] : runs) analyses.push_back(analysis::analyse_run(run->trace(), run->path()));
  const analysis::Report made = analysis::build_report(std::move(analyses));
  return {.json = analysis::render_json(made),
          .text = analysis::render_text(made),
          .markdown = analysis::render_markdown(made),
          .csv = analysis::render_csv(made),
          .html = analysis::render_html(made)};
}

template <class Part>
nb::object capsule(Part* part, const char* name, void (*destroy)(PyObject*)) {
  PyObject* made = PyCapsule_New(part, name, destroy);
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

// What a reader has not taken is released with the capsule.
template <class Part>
void destroy_part(PyObject* capsule) {
  auto* part = static_cast<Part*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
  if (part == nullptr) return PyErr_Clear();
  if (part->release != nullptr) part->release(part);
  delete part;
}

nb::object stream_of(const Table& table) {
  auto stream = std::make_unique<ArrowArrayStream>();
  export_stream(table.open(), *stream);
  return capsule(stream.release(), "arrow_array_stream", destroy_part<ArrowArrayStream>);
}

nb::object schema_of(const Table& table) {
  auto schema = std::make_unique<ArrowSchema>();
  export_schema(table.fields, *schema);
  return capsule(schema.release(), "arrow_schema", destroy_part<ArrowSchema>);
}

Table table(const RunHandle& handle, const std::string& name) {
  const nb::gil_scoped_release released;
  return name == "slices" ? slices_table(handle.run) : named_table(*handle.run, name, check_signals);
}

Table query(const RunHandle& handle, const std::string& sql) {
  const nb::gil_scoped_release released;
  return query_table(*handle.run, sql, check_signals);
}

}  // namespace
}  // namespace paceline::python

NB_MODULE(_core, module) {
  using namespace paceline::python;
  nb::exception<paceline::Error>(module, "Error").attr("__doc__") =
      "A run cannot be read, or a query is wrong. The message names the file or the place, and the remedy.";
  module.attr("__version__") = PACELINE_VERSION;

  nb::class_<Table>(module, "Table")
      .def(
          "__arrow_c_stream__", [](const Table& of, const nb::object&) { return stream_of(of); },
          nb::arg("requested_schema") = nb::none())
      .def("__arrow_c_schema__", [](const Table& of) { return schema_of(of); })
      .def("__len__", [](const Table& of) { return of.rows; })
      .def_prop_ro("columns", [](const Table& of) {
        std::vector<std::string> names;
        for (const Field& field : of.fields) names.push_back(field.name);
        return names;
      });
  nb::class_<RunHandle>(module, "LoadedRun")
      .def_prop_ro("path", [](const RunHandle& of) { return of.run->path(); })
      .def_prop_ro("notes", [](const RunHandle& of) { return of.run->trace().notes; })
      .def_prop_ro("ranks", [](const RunHandle& of) { return of.run->trace().ranks.size(); })
      .def_prop_ro("span_ns", [](const RunHandle& of) { return of.run->trace().span_ns(); });
  nb::class_<ReportTexts>(module, "ReportTexts")
      .def_ro("json", &ReportTexts::json)
      .def_ro("text", &ReportTexts::text)
      .def_ro("markdown", &ReportTexts::markdown)
      .def_ro("csv", &ReportTexts::csv)
      .def_ro("html", &ReportTexts::html);
  module.def("load", &load, nb::arg("path"), nb::arg("iterations") = "");
  module.def("report", &report, nb::arg("runs"));
  module.def("table", &table, nb::arg("run"), nb::arg("name"));
  module.def("query", &query, nb::arg("run"), nb::arg("sql"));
}
