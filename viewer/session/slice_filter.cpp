// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/slice_filter.h"

#include <QStringList>
#include <algorithm>
#include <map>
#include <memory>

#include "profiler/format/error.h"

namespace paceline::viewer {

class SliceFilterParser {
 public:
  explicit SliceFilterParser(SliceFilter& filter) : filter_(filter) {}

  void parse(const QString& text) {
    if (text.trimmed().isEmpty()) throw Error("the filter is empty");
    split(text);
    // Without any of the words, the text is one regular expression, whatever its blanks and parentheses.
    const bool plain = std::ranges::none_of(
        tokens_, [](const Token& token) { return token.quoted || is_operator(token) || token.text == "host"; });
    if (plain && !std::ranges::any_of(tokens_, [&](const Token& token) { return is_rank(token); })) {
      return add_expression(SliceFilter::Step::Kind::name, text);
    }
    parse_either();
    if (next_ < tokens_.size()) throw Error("a parenthesis is closed that was not opened");
  }

 private:
  using Kind = SliceFilter::Step::Kind;
  struct Token {
    QString text;  // "(" and ")" are parentheses
    bool quoted = false;
  };

  static bool is_word(const Token& token, const char* word) {
    return !token.quoted && token.text.compare(word, Qt::CaseInsensitive) == 0;
  }
  static bool is_operator(const Token& token) {
    return is_word(token, "and") || is_word(token, "or") || is_word(token, "not");
  }
  static bool is_parenthesis(const Token& token) { return !token.quoted && (token.text == "(" || token.text == ")"); }
  // Followed by numbers.
  bool is_rank(const Token& token) const {
    static const QRegularExpression numbers("^[0-9]");
    const std::size_t at = static_cast<std::size_t>(&token - tokens_.data());
    return is_word(token, "rank") && at + 1 < tokens_.size() && tokens_[at + 1].text.contains(numbers);
  }

  void split(const QString& text) {
    for (qsizetype at = 0; at < text.size();) {
      if (text[at].isSpace()) {
        ++at;
      } else if (text[at] == '"') {
        const qsizetype end = text.indexOf('"', at + 1);
        if (end < 0) throw Error("a quotation mark is not closed");
        tokens_.push_back({text.mid(at + 1, end - at - 1), true});
        at = end + 1;
      } else {
        qsizetype end = at;
        while (end < text.size() && !text[end].isSpace()) ++end;
        add_word(text.mid(at, end - at));
        at = end;
      }
    }
  }

  // Takes parentheses off the ends of the word that do not belong to its regular expression.
  void add_word(QString word) {
    const auto excess = [&] { return word.count('(') - word.count(')'); };
    for (; word.startsWith('(') && (excess() > 0 || word == "("); word.remove(0, 1)) tokens_.push_back({"("});
    qsizetype closed = 0;
    for (; word.endsWith(')') && (excess() < 0 || word == ")"); word.chop(1)) ++closed;
    if (!word.isEmpty()) tokens_.push_back({word});
    for (; closed > 0; --closed) tokens_.push_back({")"});
  }

  bool take(const char* word) {
    if (next_ == tokens_.size() || !is_word(tokens_[next_], word)) return false;
    ++next_;
    return true;
  }

  void parse_either() {
    for (parse_both(); take("or"); add(Kind::either)) parse_both();
  }
  void parse_both() {
    for (parse_negation(); take("and"); add(Kind::both)) parse_negation();
  }
  void parse_negation() {
    if (take("not")) {
      parse_negation();
      return add(Kind::negate);
    }
    parse_atom();
  }
  void parse_atom() {
    if (take("(")) {
      parse_either();
      if (!take(")")) throw Error("a parenthesis is not closed");
      return;
    }
    if (next_ == tokens_.size() || is_operator(tokens_[next_]) || is_parenthesis(tokens_[next_])) {
      const QString before = next_ == 0 ? QString() : tokens_[next_ - 1].text;
      throw Error(QString("a condition is missing %1")
                      .arg(before.isEmpty() ? "at the start" : "after " + before)
                      .toStdString());
    }
    if (is_rank(tokens_[next_])) {
      parse_ranks(tokens_[next_ + 1].text);
      next_ += 2;
      return;
    }
    if (take("host")) {
      if (next_ == tokens_.size()) throw Error("the name of a host is missing after host");
      return add_expression(Kind::host, tokens_[next_++].text);
    }
    // Words that follow each other are one expression.
    QStringList words;
    for (; next_ < tokens_.size() && !is_operator(tokens_[next_]) && !is_parenthesis(tokens_[next_]); ++next_) {
      words << tokens_[next_].text;
    }
    add_expression(Kind::name, words.join(' '));
  }

  void parse_ranks(const QString& list) {
    static const QRegularExpression form("^([0-9]{1,9})(?:-([0-9]{1,9}))?$");
    SliceFilter::Step step{.kind = Kind::rank};
    for (const QString& part : list.split(',')) {
      const auto match = form.match(part);
      if (!match.hasMatch()) {
        throw Error(QString("rank %1: expected numbers such as 3 or 0-7,12").arg(list).toStdString());
      }
      const int from = match.captured(1).toInt();
      step.ranks.emplace_back(from, match.captured(2).isEmpty() ? from : match.captured(2).toInt());
    }
    filter_.steps_.push_back(std::move(step));
  }

  void add(Kind kind) { filter_.steps_.push_back({.kind = kind}); }
  void add_expression(Kind kind, const QString& pattern) {
    QRegularExpression expression(pattern, QRegularExpression::CaseInsensitiveOption);
    if (!expression.isValid()) {
      throw Error(QString("not a regular expression: %1: %2").arg(pattern, expression.errorString()).toStdString());
    }
    filter_.steps_.push_back({.kind = kind, .expression = std::move(expression)});
  }

  SliceFilter& filter_;
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
};

SliceFilter::SliceFilter(const QString& text) { SliceFilterParser(*this).parse(text); }

bool SliceFilter::fits_rank(const Step& step, const analysis::Rank& rank) const {
  if (step.kind == Step::Kind::host) return step.expression.match(QString::fromStdString(rank.host)).hasMatch();
  return std::ranges::any_of(step.ranks,
                             [&](const auto& range) { return rank.rank >= range.first && rank.rank <= range.second; });
}

KindSets SliceFilter::kinds_of(const Run& run, const Ticket& ticket) const {
  const auto& kinds = run.trace.kinds;
  std::vector<std::vector<bool>> names(steps_.size());  // of each step about names: whether each kind fits
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    if (steps_[s].kind != Step::Kind::name) continue;
    for (const analysis::Kind& kind : kinds) {
      const bool fits = !ticket.cancelled() &&
                        steps_[s].expression.match(QString::fromStdString(run.trace.names[kind.name])).hasMatch();
      names[s].push_back(fits);
    }
  }
  KindSets sets;
  std::map<std::vector<bool>, KindSet> known;  // by what the steps about ranks are
  for (const analysis::Rank& rank : run.trace.ranks) {
    if (ticket.cancelled()) return {};
    std::vector<bool> about_rank(steps_.size());
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const bool is_about = steps_[s].kind == Step::Kind::rank || steps_[s].kind == Step::Kind::host;
      about_rank[s] = is_about && fits_rank(steps_[s], rank);
    }
    KindSet& set = known[about_rank];
    if (!set) {
      std::vector<bool> shown;
      std::vector<bool> values;
      for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        values.clear();
        for (std::size_t s = 0; s < steps_.size(); ++s) {
          const bool last = !values.empty() && values.back();
          switch (steps_[s].kind) {
            case Step::Kind::name:
              values.push_back(names[s][kind]);
              break;
            case Step::Kind::rank:
            case Step::Kind::host:
              values.push_back(about_rank[s]);
              break;
            case Step::Kind::negate:
              values.back() = !last;
              break;
            case Step::Kind::both:
              values.pop_back();
              values.back() = values.back() && last;
              break;
            case Step::Kind::either:
              values.pop_back();
              values.back() = values.back() || last;
          }
        }
        shown.push_back(values.back());
      }
      set = std::make_shared<const std::vector<bool>>(std::move(shown));
    }
    sets.push_back(set);
  }
  return sets;
}

}  // namespace paceline::viewer
