//! EC2, through the AWS SDK. Cargo feature `aws`.

pub mod facts;
