//! Where moto is not as EC2 is. The proxy makes up for what the other cases rely on; each line here fails when moto changes, so that somebody
//! looks at whether the proxy is still right.

use serde_json::json;

use super::moto::{Moto, Raw};

pub fn moto_deviates_as_is_known(moto: &Moto) {
    let raw = moto.account("200000000001");
    let subnets = raw.furnish("deviations");
    let template = |name: &str| {
        raw.ec2(
            "CreateLaunchTemplate",
            &[
                ("LaunchTemplateName", name),
                ("ClientToken", "same"),
                ("LaunchTemplateData.ImageId", "ami-0a0a0a0a0a0a0a0a0"),
                ("LaunchTemplateData.UserData", &"eHh4".repeat(10_000)),
            ],
        )
    };
    template("one").ok();
    template("two").ok();
    assert_eq!(template("one").all("Code"), ["InvalidLaunchTemplateName.AlreadyExistsException"], "names are held");
    the_first_override_is_launched(&raw, &subnets["us-east-1a"]);
    pages_are_a_hundred(&raw);
    let gone = raw.ec2("TerminateInstances", &[("InstanceId.1", "i-0123456789abcdef0")]);
    assert_eq!(gone.all("Code"), ["InvalidInstanceID.NotFound"]);
    let tagged =
        raw.ec2("CreateTags", &[("ResourceId.1", "i-0123456789abcdef0"), ("Tag.1.Key", "aws:x"), ("Tag.1.Value", "y")]);
    assert_eq!(tagged.status, 200, "an instance that is not there is tagged, and with a key of AWS");
    for action in ["DescribeCapacityReservations", "DescribePlacementGroups", "GetSpotPlacementScores"] {
        assert_eq!(raw.ec2(action, &[]).status, 500, "{action} is not known");
    }
    let name = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id";
    let said = raw.json("ssm", "AmazonSSM.GetParameters", &json!({ "Names": [name] })).ok();
    let said: serde_json::Value = serde_json::from_str(&said.body).unwrap();
    assert_eq!(said["InvalidParameters"], json!([name]), "images of EKS are missing");
}

/// Whatever its priority; twice for the same token; and no failure is ever said.
fn the_first_override_is_launched(raw: &Raw<'_>, subnet: &str) {
    let fleet = || {
        raw.ec2(
            "CreateFleet",
            &[
                ("Type", "instant"),
                ("ClientToken", "same"),
                ("TargetCapacitySpecification.TotalTargetCapacity", "2"),
                ("TargetCapacitySpecification.DefaultTargetCapacityType", "on-demand"),
                ("LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName", "one"),
                ("LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version", "$Latest"),
                ("LaunchTemplateConfigs.1.Overrides.1.InstanceType", "m5.large"),
                ("LaunchTemplateConfigs.1.Overrides.1.SubnetId", subnet),
                ("LaunchTemplateConfigs.1.Overrides.1.Priority", "9"),
                ("LaunchTemplateConfigs.1.Overrides.2.InstanceType", "c5.large"),
                ("LaunchTemplateConfigs.1.Overrides.2.SubnetId", subnet),
                ("LaunchTemplateConfigs.1.Overrides.2.Priority", "1"),
            ],
        )
        .ok()
    };
    let said = fleet();
    assert!(!said.body.contains("<errorSet><item>"), "{}", said.body);
    fleet();
    let running = raw.running();
    assert_eq!(running.len(), 4, "the token is ignored");
    assert!(running.values().all(|name| name == "m5.large"), "priorities are ignored: {running:?}");
}

fn pages_are_a_hundred(raw: &Raw<'_>) {
    for _ in 0..2 {
        let count = [
            ("ImageId", "ami-0a0a0a0a0a0a0a0a0"),
            ("InstanceType", "m5.large"),
            ("MinCount", "60"),
            ("MaxCount", "60"),
        ];
        // Each call is a reservation, and pages count those.
        raw.ec2("RunInstances", &count).ok();
    }
    let said = raw.ec2("DescribeInstances", &[("MaxResults", "1000")]).ok();
    assert!(said.all("instanceId").len() >= 120);
}
