// A robot in Pinocchio, from arrays.

#pragma once

#include <pinocchio/spatial.hpp>
#include <pinocchio/multibody.hpp>

#include <stdexcept>
#include <string>

inline pinocchio::SE3 placement(const double* numbers) {  // translation, then rotation by columns
  return {Eigen::Map<const Eigen::Matrix3d>(numbers + 3), Eigen::Map<const Eigen::Vector3d>(numbers)};
}

// Of each joint: its kind, its parent, its placement (12), and the inertia of its body (10): mass,
// centre of mass, moments about that by columns of the upper triangle.
inline pinocchio::Model robot_of(int count, const char* kinds, const int* parents,
                                 const double* placements, const double* inertias,
                                 const double* gravity) {
  pinocchio::Model model;
  model.gravity.linear() = Eigen::Map<const Eigen::Vector3d>(gravity);
  for (int i = 0; i < count; ++i) {
    const pinocchio::SE3 place = placement(placements + 12 * i);
    const std::string name = std::to_string(i);
    const pinocchio::JointIndex parent = parents[i];
    switch (kinds[i]) {
      case 'F': model.addJoint(parent, pinocchio::JointModelFreeFlyer(), place, name); break;
      case 'P': model.addJoint(parent, pinocchio::JointModelPlanar(), place, name); break;
      case 'X': model.addJoint(parent, pinocchio::JointModelRX(), place, name); break;
      case 'Y': model.addJoint(parent, pinocchio::JointModelRY(), place, name); break;
      case 'Z': model.addJoint(parent, pinocchio::JointModelRZ(), place, name); break;
      default: throw std::invalid_argument("a joint of another kind");
    }
    const double* own = inertias + 10 * i;
    const pinocchio::Symmetric3 moments(own[4], own[5], own[6], own[7], own[8], own[9]);
    model.appendBodyToJoint(
        i + 1, pinocchio::Inertia(own[0], Eigen::Map<const Eigen::Vector3d>(own + 1), moments),
        pinocchio::SE3::Identity());
  }
  return model;
}
