//! Volumes of a machine: those of the class, else those of its image family.

use crate::api::ec2_node_class::{AmiFamily, BlockDevice as OfClass, BlockDeviceMapping, EC2NodeClassSpec};
use crate::core::catalog::arithmetic::GIBIBYTE;
use crate::core::catalog::default_volumes;
use crate::core::model::Quantity;

use super::{BlockDevice, TemplateError};

/// The volumes of the class, in their order; where it names none those of the family.
pub(super) fn of_class(class: &EC2NodeClassSpec) -> Result<Vec<BlockDevice>, TemplateError> {
    if class.block_device_mappings.is_empty() {
        return Ok(of_family(class.resolved_ami_family()));
    }
    class.block_device_mappings.iter().enumerate().map(|(index, mapping)| of_mapping(index, mapping)).collect()
}

/// gp3, encrypted; Bottlerocket keeps its system apart from its data. Source: reference, section 6.3.
fn of_family(family: AmiFamily) -> Vec<BlockDevice> {
    let volume = |(name, gibibytes): &(&str, i32)| BlockDevice {
        device_name: (*name).to_owned(),
        encrypted: Some(true),
        size_gibibytes: Some(*gibibytes),
        volume_type: Some("gp3".to_owned()),
        ..BlockDevice::default()
    };
    default_volumes(family).iter().map(volume).collect()
}

fn of_mapping(index: usize, mapping: &BlockDeviceMapping) -> Result<BlockDevice, TemplateError> {
    let field = |name: &str| format!("spec.blockDeviceMappings[{index}]{name}");
    let wrong = |name: &str, message: String| TemplateError::Field { field: field(name), message };
    let OfClass {
        delete_on_termination,
        encrypted,
        iops,
        kms_key_id,
        snapshot_id,
        throughput,
        volume_initialization_rate,
        volume_size,
        volume_type,
    } = mapping.ebs.as_ref().ok_or_else(|| wrong("", "has no `ebs`, so it is no volume".to_owned()))?;
    // Zero is what the API server has where nothing was said.
    let number = |name: &str, number: Option<i64>| match number {
        None | Some(0) => Ok(None),
        Some(number) => i32::try_from(number)
            .ok()
            .filter(|number| *number > 0)
            .map(Some)
            .ok_or_else(|| wrong(name, format!("{number} is out of range"))),
    };
    let size = volume_size.as_ref().map(|size| {
        let text = size.text();
        let quantity: Quantity = text.parse().map_err(|_| wrong(".ebs.volumeSize", format!("`{text}` is no size")))?;
        // EC2 counts in GiB; half of one is one.
        let gibibytes =
            i32::try_from(quantity.units().div_euclid(GIBIBYTE) + i64::from(quantity.units().rem_euclid(GIBIBYTE) > 0));
        let gibibytes = gibibytes.ok().filter(|gibibytes| *gibibytes > 0);
        gibibytes.ok_or_else(|| wrong(".ebs.volumeSize", format!("`{text}` is out of range")))
    });
    let device_name = mapping.device_name.as_ref().filter(|name| !name.is_empty());
    let device_name =
        device_name.ok_or_else(|| wrong(".deviceName", "is missing, so EC2 can not attach it".to_owned()));
    Ok(BlockDevice {
        delete_on_termination: *delete_on_termination,
        encrypted: *encrypted,
        iops: number(".ebs.iops", *iops)?,
        throughput: number(".ebs.throughput", *throughput)?,
        kms_key_id: kms_key_id.clone(),
        snapshot_id: snapshot_id.clone(),
        initialization_rate: *volume_initialization_rate,
        size_gibibytes: size.transpose()?,
        volume_type: volume_type.clone(),
        device_name: device_name.cloned()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(mappings: Value) -> Result<Vec<BlockDevice>, TemplateError> {
        let class = json!({ "amiSelectorTerms": [{ "alias": "al2023@latest" }], "subnetSelectorTerms": [],
            "securityGroupSelectorTerms": [], "blockDeviceMappings": mappings });
        of_class(&serde_json::from_value(class).unwrap())
    }

    #[test]
    fn sizes_are_whole_gibibytes() {
        for (size, gibibytes) in
            [("20Gi", 20), ("100G", 94), ("1Ti", 1024), ("1T", 932), ("1.5Gi", 2), ("1073741825", 2)]
        {
            let found = of(json!([{ "deviceName": "/dev/xvda", "ebs": { "volumeSize": size } }])).unwrap();
            assert_eq!(found[0].size_gibibytes, Some(gibibytes), "{size}");
        }
    }

    #[test]
    fn each_family_has_volumes_of_its_own() {
        let sizes = |family| of_family(family).iter().filter_map(|it| it.size_gibibytes).collect::<Vec<_>>();
        assert_eq!(sizes(AmiFamily::AL2023), [20]);
        assert_eq!(sizes(AmiFamily::Bottlerocket), [4, 20]);
        assert_eq!(sizes(AmiFamily::Windows2025), [50]);
        assert_eq!(sizes(AmiFamily::Custom), [0; 0]);
        assert_eq!(of(json!([])).unwrap(), of_family(AmiFamily::AL2023));
    }

    #[test]
    fn what_the_class_says_is_kept_and_what_it_does_not_say_is_left_open() {
        let found = of(json!([
            { "deviceName": "/dev/xvda", "rootVolume": true, "ebs": { "volumeType": "io2", "iops": 4000, "throughput": 0,
                "kmsKeyID": "key", "deleteOnTermination": true, "snapshotID": "snap-1", "volumeInitializationRate": 200 } },
            { "deviceName": "/dev/xvdb", "ebs": { "volumeSize": "30Gi", "encrypted": false, "throughput": 250 } }]))
        .unwrap();
        assert_eq!((found[0].iops, found[0].throughput, found[0].size_gibibytes), (Some(4000), None, None));
        assert_eq!((found[0].initialization_rate, found[0].snapshot_id.as_deref()), (Some(200), Some("snap-1")));
        assert_eq!((found[1].encrypted, found[1].throughput), (Some(false), Some(250)));
    }

    #[test]
    fn what_ec2_could_not_read_is_named() {
        for (mapping, field) in [
            (json!({ "deviceName": "/dev/xvda" }), "spec.blockDeviceMappings[0]: has no `ebs`"),
            (json!({ "ebs": { "volumeSize": "20Gi" } }), "spec.blockDeviceMappings[0].deviceName: is missing"),
            (json!({ "ebs": { "volumeSize": "big" } }), "spec.blockDeviceMappings[0].ebs.volumeSize: `big`"),
            (json!({ "ebs": { "volumeSize": "0" } }), "spec.blockDeviceMappings[0].ebs.volumeSize: `0`"),
            (json!({ "ebs": { "volumeSize": "-1Gi" } }), "spec.blockDeviceMappings[0].ebs.volumeSize: `-1Gi`"),
            (json!({ "ebs": { "volumeSize": "4Ei" } }), "spec.blockDeviceMappings[0].ebs.volumeSize: `4Ei`"),
            (json!({ "ebs": { "iops": -1 } }), "spec.blockDeviceMappings[0].ebs.iops: -1"),
            (json!({ "ebs": { "throughput": 5_000_000_000_i64 } }), "spec.blockDeviceMappings[0].ebs.throughput: "),
        ] {
            let message = of(json!([mapping])).unwrap_err().to_string();
            assert!(message.starts_with(field), "{message}");
        }
    }
}
