//! What the tests on a real cluster share.
//!
//! - [`suite`]: the cluster, the images, and the operator installed with Helm, once for all tests;
//! - [`fleet`]: one MoEDeployment in a namespace of its own;
//! - [`spec`]: the MoEDeployment that tests start from;
//! - [`client`]: an OpenAI client, and traffic in the background;
//! - [`prompts`]: recorded prompts by domain;
//! - [`wait`]: waiting for conditions.

pub mod client;
pub mod fleet;
pub mod prompts;
pub mod spec;
pub mod suite;
pub mod wait;
