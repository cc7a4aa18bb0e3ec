// The list of problems with fields has what it says: every shape in every form and window, templates in
// several frames.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tests/conformance/problems.hpp"

namespace xcorr::conformance {
namespace {

std::string place_of(Problem problem) {
  problem.fields = {};
  return problem.id();
}

TEST(FieldProblems, PlacesHaveEveryFormOfEveryShapeAndWindow) {
  std::map<std::string, std::set<Form>> forms;
  std::set<std::string> equal, unequal;
  for (const Problem& p : field_places()) {
    const std::string shapes = to_string(p.left) + "/" + to_string(p.right);
    (p.left == p.right ? equal : unequal).insert(shapes);
    forms[shapes + "/" + to_string(p.window)].insert(p.form);
  }
  EXPECT_EQ(equal.size(), 7u);
  EXPECT_EQ(unequal.size(), 5u);
  EXPECT_EQ(forms.size(), 25u);
  for (const auto& [place, of_place] : forms) EXPECT_EQ(of_place.size(), 4u) << place;
}

TEST(FieldProblems, BothKindsOfScoresMeetEveryPlace) {
  std::set<std::string> normalised, others;
  for (const Problem& p : field_problems()) {
    (is_normalised(p.fields.score.kind) ? normalised : others).insert(place_of(p));
  }
  for (const Problem& p : field_places()) {
    EXPECT_EQ(normalised.count(p.id()), 1u) << p.id() << " with ncc or zncc";
    EXPECT_EQ(others.count(p.id()), 1u) << p.id() << " with other scores";
  }
}

TEST(FieldProblems, NoneComesTwice) {
  std::set<std::string> ids;
  for (const Problem& p : field_problems()) EXPECT_TRUE(ids.insert(p.id()).second) << p.id();
}

// Template matching is met whatever the turns of other fields.
TEST(FieldProblems, TemplatesLieInSeveralFramesWithEitherResult) {
  std::set<std::string> missing = {"n-to-m surface", "n-to-m peak", "n-to-mn surface",
                                   "n-to-mn peak"};
  for (const Problem& p : field_problems()) {
    const bool inside = p.left.rows > 1 && p.left.rows < p.right.rows && p.left.cols < p.right.cols;
    const bool plain = p.fields.masks == Masks::none && p.fields.views == Views::dense;
    if (!inside || !plain || p.fields.score.kind != ScoreKind::zncc || p.rights < 2) continue;
    if (p.window.kind != Window::Kind::valid) continue;
    const bool surface = p.fields.result.kind == ResultKind::surface;
    if (!surface && p.fields.result.kind != ResultKind::peak) continue;
    missing.erase(std::string(to_string(p.form)) + (surface ? " surface" : " peak"));
  }
  EXPECT_EQ(missing, std::set<std::string>{});
}

}  // namespace
}  // namespace xcorr::conformance
