// Pinocchio's algorithms over CasADi's expressions, as `pinocchio.casadi` has them in Python: what a
// user of it would write. Graphs are given out as the text in which CasADi keeps functions.

#include <pinocchio/autodiff/casadi.hpp>

#include "_pinocchio_robot.hpp"

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/centroidal.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/frames.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/kinematics.hpp>
#include <pinocchio/algorithm/rnea.hpp>

namespace {

using casadi::SX;
using Model = pinocchio::ModelTpl<SX>;
using Data = pinocchio::DataTpl<SX>;
using Vector = Model::VectorXs;

Vector vector_of(const SX& column) {
  Vector values(column.size1());
  for (int i = 0; i < values.size(); ++i) values[i] = column(i);
  return values;
}

template <class Values>
SX matrix_of(const Values& values) {
  SX matrix(values.rows(), values.cols());
  for (int j = 0; j < values.cols(); ++j)
    for (int i = 0; i < values.rows(); ++i) matrix(i, j) = values(i, j);
  return matrix;
}

casadi::Function graph_of(const std::string& quantity, bool world, const pinocchio::Model& robot,
                          int joint, const pinocchio::SE3& hand) {
  const Model model = robot.cast<SX>();
  Data data(model);
  const auto convention = world ? pinocchio::Convention::WORLD : pinocchio::Convention::LOCAL;
  const SX q = SX::sym("q", model.nq), v = SX::sym("v", model.nv), tau = SX::sym("tau", model.nv);
  const Vector configuration = vector_of(q), velocity = vector_of(v);
  if (quantity == "mass_matrix") {
    pinocchio::crba(model, data, configuration, convention);
    return casadi::Function(quantity, {q}, {SX::triu2symm(SX::triu(matrix_of(data.M)))});
  }
  if (quantity == "bias") {
    const auto& forces = pinocchio::nonLinearEffects(model, data, configuration, velocity);
    return casadi::Function(quantity, {q, v}, {matrix_of(forces)});
  }
  if (quantity == "forward_dynamics") {
    const auto& rates =
        pinocchio::aba(model, data, configuration, velocity, vector_of(tau), convention);
    return casadi::Function(quantity, {q, v, tau}, {matrix_of(rates)});
  }
  if (quantity == "momentum_matrix") {
    const auto& map = pinocchio::computeCentroidalMap(model, data, configuration);
    return casadi::Function(quantity, {q}, {matrix_of(map)});
  }
  const auto placement = hand.cast<SX>();
  const Vector still = vector_of(SX::zeros(model.nv));
  pinocchio::forwardKinematics(model, data, configuration, velocity, still);
  pinocchio::computeJointJacobians(model, data);
  Data::Matrix6x jacobian(6, model.nv);
  for (int j = 0; j < model.nv; ++j)
    for (int i = 0; i < 6; ++i) jacobian(i, j) = SX(0);
  pinocchio::getFrameJacobian(model, data, joint, placement, pinocchio::LOCAL, jacobian);
  const auto change = pinocchio::getFrameAcceleration(model, data, joint, placement, pinocchio::LOCAL);
  return casadi::Function(quantity, {q, v}, {matrix_of(jacobian), matrix_of(change.toVector())});
}

}  // namespace

// The text of a graph, which stays until the next call; or, after "!", what went wrong.
extern "C" __attribute__((visibility("default"))) const char* graph(
    const char* quantity, int world, int count, const char* kinds, const int* parents,
    const double* placements, const double* inertias, const double* gravity, int joint,
    const double* hand) {
  static std::string text;
  try {
    const pinocchio::Model robot =
        robot_of(count, kinds, parents, placements, inertias, gravity);
    text = graph_of(quantity, world, robot, joint, placement(hand)).serialize();
  } catch (const std::exception& error) {
    text = std::string("!") + error.what();
  }
  return text.c_str();
}
