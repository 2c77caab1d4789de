//! What is wrong with a value of an EC2NodeClass.

/// A value of an EC2NodeClass that can not be used; the default is used in its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeClassProblem {
    /// `spec.kubelet.kubeReserved.cpu`
    pub field: String,
    pub message: String,
}
