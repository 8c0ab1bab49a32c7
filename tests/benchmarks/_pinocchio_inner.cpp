// Functions over Pinocchio's headers, written as a user of C++ would for speed. Everything works on
// memory that is allocated once.

#include "_pinocchio_robot.hpp"

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/centroidal.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/kinematics.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include <Eigen/LU>

namespace {

using Vector6 = Eigen::Matrix<double, 6, 1>;
using Vector7 = Eigen::Matrix<double, 7, 1>;
using Matrix6 = Eigen::Matrix<double, 6, 6>;
using Matrix6x7 = Eigen::Matrix<double, 6, 7>;
using Vector = Eigen::Map<const Eigen::VectorXd>;

struct Robot {
  pinocchio::Model model;
  pinocchio::Data data;
  pinocchio::JointIndex joint;  // carries the hand
  pinocchio::SE3 hand;          // in the frame of that joint
  pinocchio::Force momentum;    // about the inertial origin
  Vector6 stiffness, damping;   // diagonals
  Eigen::VectorXd v;
};

pinocchio::SE3 pose(const double* numbers) {
  return {Eigen::Map<const Eigen::Quaterniond>(numbers + 3).toRotationMatrix(),
          Eigen::Map<const Eigen::Vector3d>(numbers)};
}

}  // namespace

#define VISIBLE extern "C" __attribute__((visibility("default")))

VISIBLE void* robot_new(int count, const char* kinds, const int* parents, const double* placements,
                        const double* inertias, const double* gravity, int joint,
                        const double* hand, const double* law) {
  auto* robot = new Robot;
  try {
    robot->model = robot_of(count, kinds, parents, placements, inertias, gravity);
  } catch (const std::invalid_argument&) {
    delete robot;
    return nullptr;
  }
  const pinocchio::Model& model = robot->model;
  robot->data = pinocchio::Data(model);
  robot->joint = joint;
  robot->hand = placement(hand);
  robot->momentum = pinocchio::Force(Eigen::Map<const Vector6>(law));
  robot->stiffness = Eigen::Map<const Vector6>(law + 6);
  robot->damping = Eigen::Map<const Vector6>(law + 12);
  robot->v.setZero(model.nv);
  return robot;
}

VISIBLE void robot_delete(void* self) { delete static_cast<Robot*>(self); }

#define BEGIN                                      \
  Robot& robot = *static_cast<Robot*>(self);       \
  const pinocchio::Model& model = robot.model;     \
  pinocchio::Data& data = robot.data;              \
  const Vector q(arg[0], model.nq);

VISIBLE int mass_matrix(void* self, const double** arg, double** res) {
  BEGIN
  pinocchio::crba(model, data, q, pinocchio::Convention::LOCAL);
  Eigen::Map<Eigen::MatrixXd> mass(res[0], model.nv, model.nv);
  mass.triangularView<Eigen::Upper>() = data.M;
  mass.triangularView<Eigen::StrictlyLower>() = data.M.transpose();
  return 0;
}

VISIBLE int bias(void* self, const double** arg, double** res) {
  BEGIN
  const Vector v(arg[1], model.nv);
  Eigen::Map<Eigen::VectorXd>(res[0], model.nv) = pinocchio::nonLinearEffects(model, data, q, v);
  return 0;
}

VISIBLE int forward_dynamics(void* self, const double** arg, double** res) {
  BEGIN
  const Vector v(arg[1], model.nv), forces(arg[2], model.nv);
  Eigen::Map<Eigen::VectorXd>(res[0], model.nv) =
      pinocchio::aba(model, data, q, v, forces, pinocchio::Convention::LOCAL);
  return 0;
}

VISIBLE int momentum_matrix(void* self, const double** arg, double** res) {
  BEGIN
  Eigen::Map<pinocchio::Data::Matrix6x>(res[0], 6, model.nv) =
      pinocchio::computeCentroidalMap(model, data, q);
  return 0;
}

// Body Jacobian of the hand and Jdot v.
VISIBLE int motion(void* self, const double** arg, double** res) {
  BEGIN
  const Vector v(arg[1], model.nv);
  Eigen::Map<pinocchio::Data::Matrix6x> jacobian(res[0], 6, model.nv);
  pinocchio::forwardKinematics(model, data, q, v, robot.v);  // robot.v is still zero
  pinocchio::SE3 from = robot.hand.inverse();  // the joint's frame seen from the hand
  pinocchio::JointIndex i = robot.joint;
  jacobian.setZero();
  while (i > 0) {
    const int start = model.idx_vs[i], size = model.nvs[i];
    const auto& axes = data.joints[i].S().matrix();
    for (int k = 0; k < size; ++k)
      jacobian.col(start + k) =
          from.act(pinocchio::Motion(Vector6(axes.col(k)))).toVector();
    from = from * data.liMi[i].inverse();
    i = model.parents[i];
  }
  Eigen::Map<Vector6> change(res[1]);
  change = robot.hand.actInv(data.a[robot.joint]).toVector();
  return 0;
}

// The law of a floating arm of six joints: q, s, pose, twist, acceleration -> torques. One
// composite-body pass, which leaves poses and Jacobian too, and one Newton-Euler pass, which
// leaves velocities and accelerations without vdot; then small products of fixed size.
VISIBLE int law(void* self, const double** arg, double** res) {
  BEGIN
  const Eigen::Map<const Vector6> s(arg[1]), twist(arg[3]), acceleration(arg[4]);
  pinocchio::crba(model, data, q, pinocchio::Convention::WORLD);
  const Matrix6 base = data.M.topLeftCorner<6, 6>().selfadjointView<Eigen::Upper>();
  const Matrix6 coupling = data.M.block<6, 6>(0, 6);
  const pinocchio::SE3& root = data.oMi[1];
  Matrix6x7 right;
  right.leftCols<6>() = coupling;
  right.col(6) = root.actInv(robot.momentum).toVector();
  const Eigen::LDLT<Matrix6> factor(base);
  const Matrix6x7 solved = factor.solve(right);
  const auto connection = solved.leftCols<6>();
  robot.v.head<6>() = solved.col(6) - connection * s;
  robot.v.tail<6>() = s;
  const auto& bias = pinocchio::nonLinearEffects(model, data, q, robot.v);
  const Vector6 drift = -factor.solve(Vector6(bias.head<6>()));

  const pinocchio::SE3 here = data.oMi[robot.joint] * robot.hand;
  const pinocchio::SE3 from = here.actInv(root);  // of the base's twists
  const pinocchio::Motion velocity = robot.hand.actInv(data.v[robot.joint]);
  // There is no gravity in these accelerations: the robot floats.
  const pinocchio::Motion rate =
      robot.hand.actInv(data.a_gf[robot.joint]) + from.act(pinocchio::Motion(drift));
  Matrix6 decoupling;
  const auto columns = data.J.rightCols<6>();
  for (int k = 0; k < 6; ++k)
    decoupling.col(k) = here.actInv(pinocchio::Motion(Vector6(columns.col(k)))).toVector();
  decoupling.noalias() -= from.toActionMatrix() * connection;

  const pinocchio::SE3 error = here.actInv(pose(arg[2]));
  const pinocchio::Motion carried = error.act(pinocchio::Motion(twist));
  const pinocchio::Motion ahead =
      error.act(pinocchio::Motion(acceleration)) - velocity.cross(carried) - rate;
  const Vector6 push = robot.stiffness.cwiseProduct(pinocchio::log6(error).toVector());
  Matrix6 differential;
  pinocchio::Jlog6(error.inverse(), differential);
  Vector6 command = differential.transpose() * push + ahead.toVector();
  command -= robot.damping.cwiseProduct((velocity - carried).toVector());
  const Vector6 sdot = decoupling.partialPivLu().solve(command);

  Eigen::Map<Vector6> u(res[0]);
  u = bias.tail<6>();
  u.noalias() += coupling.transpose() * (drift - connection * sdot);
  u.noalias() += data.M.bottomRightCorner<6, 6>().selfadjointView<Eigen::Upper>() * sdot;
  return 0;
}
