// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/accessible_timeline.h"

#include <QAccessibleWidget>
#include <vector>

#include "viewer/timeline/timeline_widget.h"

namespace paceline::viewer {
namespace accessible_timeline {

// Interfaces that Qt's cache owns; they are dropped when what they stand for changes.
class Children {
 public:
  ~Children() { clear(); }
  void clear() {
    for (const QAccessible::Id id : ids_) QAccessible::deleteAccessibleInterface(id);
    ids_.clear();
  }
  void add(QAccessibleInterface* child) { ids_.push_back(QAccessible::registerAccessibleInterface(child)); }
  int count() const { return static_cast<int>(ids_.size()); }
  QAccessibleInterface* at(int index) const {
    return index >= 0 && index < count() ? QAccessible::accessibleInterface(ids_[static_cast<std::size_t>(index)])
                                         : nullptr;
  }
  int index_of(const QAccessibleInterface* child) const {
    for (int i = 0; i < count(); ++i) {
      if (at(i) == child) return i;
    }
    return -1;
  }
  QAccessibleInterface* at_point(int x, int y) const {
    for (int i = 0; i < count(); ++i) {
      if (at(i)->rect().contains(x, y)) return at(i);
    }
    return nullptr;
  }

 private:
  std::vector<QAccessible::Id> ids_;
};

// What rows and slices share: neither is a QObject.
class Part : public QAccessibleInterface {
 public:
  Part(TimelineWidget& timeline, QAccessibleInterface& parent) : timeline_(timeline), parent_(parent) {}
  bool isValid() const override { return true; }
  QObject* object() const override { return nullptr; }
  QAccessibleInterface* parent() const override { return &parent_; }
  QAccessibleInterface* child(int) const override { return nullptr; }
  QAccessibleInterface* childAt(int, int) const override { return nullptr; }
  int childCount() const override { return 0; }
  int indexOfChild(const QAccessibleInterface*) const override { return -1; }
  void setText(QAccessible::Text, const QString&) override {}
  QAccessible::Role role() const override { return QAccessible::TreeItem; }

 protected:
  QRect on_screen(const QRect& box) const {
    const QRect seen = box & timeline_.viewport()->rect();
    return {timeline_.viewport()->mapToGlobal(seen.topLeft()), seen.size()};
  }

  TimelineWidget& timeline_;
  QAccessibleInterface& parent_;
};

class Slice : public Part, public QAccessibleActionInterface {
 public:
  Slice(TimelineWidget& timeline, QAccessibleInterface& row, const SliceRef& slice)
      : Part(timeline, row), slice_(slice) {}

  QString text(QAccessible::Text kind) const override {
    return kind == QAccessible::Name ? slice_text(timeline_.geometry().run, slice_) : QString();
  }
  QRect rect() const override { return on_screen(timeline_.geometry().box_of(slice_).value_or(QRect())); }
  QAccessible::State state() const override {
    QAccessible::State state;
    state.selectable = state.focusable = true;
    state.selected = timeline_.geometry().state.selection.slice() == slice_;
    state.offscreen = rect().isEmpty();
    return state;
  }
  void* interface_cast(QAccessible::InterfaceType type) override {
    return type == QAccessible::ActionInterface ? static_cast<QAccessibleActionInterface*>(this) : nullptr;
  }
  QStringList actionNames() const override { return {pressAction()}; }
  void doAction(const QString& name) override {
    if (name == pressAction()) timeline_.reveal(slice_);
  }
  QStringList keyBindingsForAction(const QString&) const override { return {}; }

 private:
  SliceRef slice_;
};

class RowItem : public Part {
 public:
  RowItem(TimelineWidget& timeline, QAccessibleInterface& parent, std::size_t row)
      : Part(timeline, parent), row_(row) {}

  QString text(QAccessible::Text kind) const override {
    const Row& row = *placed().row;
    const QString rank = QString("Rank %1").arg(timeline_.geometry().run.trace.ranks[row.rank()].rank);
    if (kind != QAccessible::Name) return {};
    if (row.is_strip() || row.name().isEmpty()) return rank;
    return rank + ", " + row.name() + (row.is_states() ? ", states" : "");
  }
  QRect rect() const override {
    const Geometry geometry = timeline_.geometry();
    return on_screen({0, geometry.y_of(placed().y), geometry.size.width(), placed().end_y - placed().y});
  }
  QAccessible::State state() const override {
    QAccessible::State state;
    const Arrangement& view = timeline_.geometry().state.arrangement;
    const Row& row = *placed().row;
    state.expandable = row.is_strip();
    state.expanded = row.is_strip() && !view.collapsed(row.rank());
    state.collapsed = row.is_strip() && view.collapsed(row.rank());
    state.offscreen = rect().isEmpty();
    return state;
  }
  QAccessibleInterface* child(int index) const override { return slices().at(index); }
  int childCount() const override { return slices().count(); }
  int indexOfChild(const QAccessibleInterface* child) const override { return slices().index_of(child); }
  QAccessibleInterface* childAt(int x, int y) const override { return slices().at_point(x, y); }

 private:
  const PlacedRow& placed() const { return timeline_.rows().rows()[row_]; }
  Children& slices() const {
    const TimeAxis& axis = timeline_.geometry().state.time.axis();
    const std::vector<SliceRef> in_view = placed().row->slices_in(axis);
    if (in_view != shown_) {
      shown_ = in_view;
      slices_.clear();
      for (const SliceRef& slice : shown_) {
        slices_.add(new Slice(timeline_, const_cast<RowItem&>(*this), slice));
      }
    }
    return slices_;
  }

  std::size_t row_;
  mutable std::vector<SliceRef> shown_;
  mutable Children slices_;
};

class Timeline : public QAccessibleWidget {
 public:
  explicit Timeline(TimelineWidget* timeline) : QAccessibleWidget(timeline, QAccessible::Tree), timeline_(*timeline) {}

  QAccessibleInterface* child(int index) const override { return rows().at(index); }
  int childCount() const override { return rows().count(); }
  int indexOfChild(const QAccessibleInterface* child) const override { return rows().index_of(child); }
  QAccessibleInterface* childAt(int x, int y) const override { return rows().at_point(x, y); }
  QAccessibleInterface* focusChild() const override {
    const auto selected = timeline_.geometry().state.selection.slice();
    const PlacedRow* row = selected ? timeline_.rows().row_of(*selected) : nullptr;
    if (row == nullptr) return nullptr;
    QAccessibleInterface* item = rows().at(static_cast<int>(row - timeline_.rows().rows().data()));
    for (int i = 0; i < item->childCount(); ++i) {
      if (item->child(i)->state().selected) return item->child(i);
    }
    return item;
  }

 private:
  Children& rows() const {
    const RowLayout& layout = timeline_.rows();
    if (placings_ != layout.placings()) {
      placings_ = layout.placings();
      rows_.clear();
      for (std::size_t i = 0; i < layout.rows().size(); ++i) {
        rows_.add(new RowItem(timeline_, const_cast<Timeline&>(*this), i));
      }
    }
    return rows_;
  }

  TimelineWidget& timeline_;
  mutable std::size_t placings_ = 0;
  mutable Children rows_;
};

QAccessibleInterface* make(const QString&, QObject* object) {
  auto* timeline = qobject_cast<TimelineWidget*>(object);
  return timeline != nullptr ? new Timeline(timeline) : nullptr;
}

}  // namespace accessible_timeline

void install_accessible_timeline() { QAccessible::installFactory(&accessible_timeline::make); }

}  // namespace paceline::viewer
