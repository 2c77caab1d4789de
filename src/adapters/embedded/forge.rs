//! A forge that remembers what was posted.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::core::plan::{Plan, Revision};
use crate::ports::{Forge, PortError};

/// How many posts are remembered; older ones are dropped and counted.
const POSTS_MAX: usize = 1000;

#[derive(Clone, Debug, PartialEq)]
pub enum Post {
    Plan { plan_id: String, revision: Revision, markdown: String },
    Failure { revision: Revision, markdown: String },
}

/// Posts in the order they came; cheap to clone, clones share them.
#[derive(Clone, Debug, Default)]
pub struct EmbeddedForge {
    posts: Rc<RefCell<Posts>>,
}

#[derive(Debug, Default)]
struct Posts {
    kept: VecDeque<Post>,
    dropped: usize,
}

impl EmbeddedForge {
    pub fn posts(&self) -> Vec<Post> {
        self.posts.borrow().kept.iter().cloned().collect()
    }

    /// Posts that are no longer remembered.
    pub fn dropped(&self) -> usize {
        self.posts.borrow().dropped
    }

    fn remember(&self, post: Post) {
        let mut posts = self.posts.borrow_mut();
        if posts.kept.len() == POSTS_MAX {
            posts.kept.pop_front();
            posts.dropped += 1;
        }
        posts.kept.push_back(post);
    }
}

impl Forge for EmbeddedForge {
    async fn post_plan(&self, plan: &Plan, markdown: impl Fn() -> String) -> Result<(), PortError> {
        self.remember(Post::Plan { plan_id: plan.id.clone(), revision: plan.revision.clone(), markdown: markdown() });
        Ok(())
    }

    async fn post_failure(&self, revision: &Revision, _headline: &str, markdown: &str) -> Result<(), PortError> {
        self.remember(Post::Failure { revision: revision.clone(), markdown: markdown.to_owned() });
        Ok(())
    }
}
