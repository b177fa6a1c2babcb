// SPDX-License-Identifier: Apache-2.0
// The critical path over the rows: a line along the work that decided when the run ended, which goes over to another
// rank or stream where the path waited for it. Computed in a worker when it is first shown.
#pragma once

#include <QPainter>
#include <vector>

#include "analysis/graph/critical_path.h"
#include "viewer/drawing/labels.h"
#include "viewer/drawing/palette.h"
#include "viewer/timeline/geometry.h"

namespace paceline::viewer {

class PathLayer {
 public:
  explicit PathLayer(Document& document) : document_(document), segments_(document) {}

  // Begins to compute the path, unless it is there.
  void want();
  // Draws nothing while the path is computed. Segments that no column can show apart are left out, so the cost follows
  // the columns.
  DrawCounts paint(QPainter& painter, const Geometry& geometry, const Theme& theme) const;
  // By time; nullptr while they are computed; empty where the run has no critical path.
  const std::vector<analysis::PathSegment>* segments() const { return segments_.made(); }

 private:
  Document& document_;
  OnDemand<std::vector<analysis::PathSegment>> segments_;
};

}  // namespace paceline::viewer
