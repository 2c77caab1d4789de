//! EC2. What decides is plain data, compiled and tested without the AWS SDK; what calls EC2 is behind the Cargo feature `aws`.

#[cfg(feature = "aws")]
pub mod facts;
pub mod failures;
pub mod fleet;
pub mod launch_templates;
pub mod user_data;
