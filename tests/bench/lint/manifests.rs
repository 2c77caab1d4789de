//! Manifests as a large platform has them: two pools, a workload and a class in turn, each in a file, a hundred files in a folder. No two
//! are the same, and none has a mistake, so that no program stops early.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark writes files")]

use std::path::Path;

use crate::random::Random;

const FAMILIES: [&str; 10] = ["m7i", "c7i", "r7g", "m6a", "c6g", "t3", "m5", "c5n", "r5", "i4i"];
const IN_A_FOLDER: usize = 100;

/// Writes so many of them below the folder.
pub fn write(folder: &Path, count: usize) {
    let mut random = Random::new(35);
    for number in 0..count {
        let text = match number % 4 {
            0 | 1 => pool(number, &mut random),
            2 => workload(number, &mut random),
            _ => class(number, &mut random),
        };
        let below = folder.join(format!("team-{}", number / IN_A_FOLDER));
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(below.join(format!("manifest-{number}.yaml")), text).unwrap();
    }
}

/// The first of them, which is a pool.
pub fn first() -> (String, String) {
    ("team-0/manifest-0.yaml".to_owned(), pool(0, &mut Random::new(35)))
}

fn pool(number: usize, random: &mut Random) -> String {
    let mut between = |low: usize, high: usize| low + random.below(high - low);
    let (weight, cpu, memory, share) = (between(1, 100), between(100, 2000), between(100, 4000), between(5, 20));
    let (minutes, hour, hours, above) = (between(1, 30), between(6, 10), between(200, 720), between(1, 8));
    let families = [random.pick(&FAMILIES[..3]), random.pick(&FAMILIES[3..6]), random.pick(&FAMILIES[6..])].join(", ");
    let (team, class) = (number % 37, number / 4 * 4 + 3);
    format!(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\n  name: pool-{number}\n  labels:\n    team: team-{team}\nspec:\n  \
         weight: {weight}\n  limits:\n    cpu: {cpu}\n    memory: {memory}Gi\n  disruption:\n    consolidationPolicy: \
         WhenEmptyOrUnderutilized\n    consolidateAfter: {minutes}m\n    budgets:\n      - nodes: \"{share}%\"\n      - nodes: \"0\"\n        \
         schedule: \"0 {hour} * * mon-fri\"\n        duration: 8h\n  template:\n    metadata:\n      labels:\n        \
         team: team-{team}\n    spec:\n      expireAfter: {hours}h\n      terminationGracePeriod: 30m\n      nodeClassRef:\n        \
         group: karpenter.k8s.aws\n        kind: EC2NodeClass\n        name: class-{class}\n      taints:\n        \
         - key: example.com/team-{number}\n          effect: NoSchedule\n      requirements:\n        \
         - key: karpenter.sh/capacity-type\n          operator: In\n          values: [on-demand, spot]\n        \
         - key: karpenter.k8s.aws/instance-family\n          operator: In\n          values: [{families}]\n        \
         - key: kubernetes.io/arch\n          operator: In\n          values: [amd64, arm64]\n        \
         - key: karpenter.k8s.aws/instance-cpu\n          operator: Gt\n          values: [\"{above}\"]\n"
    )
}

fn class(number: usize, random: &mut Random) -> String {
    let (role, cluster, team) = (number % 11, number % 13, number % 37);
    let (size, word) = (50 + random.below(150), random.below(1_000_000_000));
    format!(
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata:\n  name: class-{number}\nspec:\n  role: nodes-{role}\n  \
         amiSelectorTerms:\n    - alias: al2023@v20240807\n  subnetSelectorTerms:\n    - tags:\n        \
         karpenter.sh/discovery: cluster-{cluster}\n  securityGroupSelectorTerms:\n    - tags:\n        \
         karpenter.sh/discovery: cluster-{cluster}\n  metadataOptions:\n    httpTokens: required\n  blockDeviceMappings:\n    \
         - deviceName: /dev/xvda\n      rootVolume: true\n      ebs:\n        volumeSize: {size}Gi\n        volumeType: gp3\n        \
         encrypted: true\n  tags:\n    team: team-{team}\n  userData: |\n    #!/bin/bash\n    echo {word}\n"
    )
}

fn workload(number: usize, random: &mut Random) -> String {
    let mut between = |low: usize, high: usize| low + random.below(high - low);
    let (replicas, version, cpu, memory) = (between(1, 20), between(1, 99), between(100, 900), between(100, 900));
    let namespace = number % 50;
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web-{number}\n  namespace: team-{namespace}\nspec:\n  \
         replicas: {replicas}\n  selector:\n    matchLabels:\n      app: web-{number}\n  template:\n    metadata:\n      labels:\n        \
         app: web-{number}\n    spec:\n      nodeSelector:\n        karpenter.sh/capacity-type: spot\n      containers:\n        \
         - name: web\n          image: example.com/web:{version}\n          resources:\n            \
         requests: {{ cpu: {cpu}m, memory: {memory}Mi }}\n"
    )
}
