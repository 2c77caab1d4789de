//! What the help of a command ends with: one or two ways to call it.

/// Of the program itself: in which order somebody new tries it.
pub const BEGIN: &str = "\
Begin with a folder of NodePools and EC2NodeClasses:
  cutlist lint .                                  are they right? offline
  cutlist snapshot --context NAME > cluster.json  the cluster in a file; nothing is written to it
  cutlist plan . --snapshot cluster.json          which nodes would come and go, and why
  cutlist run --embedded examples/quickstart      all of it in memory: neither a cluster nor an account";
pub const PLAN: &str = "\
Examples:
  cutlist plan . --snapshot cluster.json
  cutlist plan . --context demo --against main --output markdown";
pub const PREVIEW: &str = "\
Examples:
  cutlist preview . --base origin/main --cluster blue=snapshots/blue
  cutlist preview . --base main --head change --context demo -o json";
pub const WHY: &str = "\
Examples:
  cutlist why pod shop/web . --snapshot cluster.json
  cutlist why node ip-10-0-1-10.ec2.internal . --context demo";
pub const SIMULATE: &str = "\
Examples:
  cutlist simulate . --snapshot cluster.json
  cutlist simulate . --snapshot cluster.json --scale shop/web=20 --until 2h";
pub const LINT: &str = "\
Examples:
  cutlist lint .
  cutlist lint . --changed-since origin/main -o github";
pub const RUN: &str = "\
Examples:
  cutlist run --embedded examples/quickstart
  cutlist run https://git.example.com/nodes.git --mode observe";
pub const POST: &str = "\
Examples:
  cutlist post preview.json
  cutlist post preview.json --dry-run";
pub const REVIEW: &str = "\
Examples:
  cutlist review https://git.example.com/nodes.git --forge gitea --repository shop/nodes --once";
pub const AMI: &str = "\
Examples:
  cutlist ami lock . --context demo
  cutlist ami bump . --snapshot cluster.json";
pub const CATALOG: &str = "\
Examples:
  cutlist catalog --region eu-west-1 --filter arch=arm64 --sort price";
pub const APPROVE: &str = "\
Examples:
  cutlist approve 1aa326 --context demo";
pub const COMPLETION: &str = "\
Examples:
  source <(cutlist completion bash)
  cutlist completion zsh > \"${fpath[1]}/_cutlist\"
  cutlist completion fish > ~/.config/fish/completions/cutlist.fish";
pub const SNAPSHOT: &str = "\
Examples:
  cutlist snapshot --context demo
  cutlist snapshot --context demo --to snapshots --name blue";
