//! Network interfaces of a machine. There is always one, which the security groups stand in.

use crate::api::ec2_node_class::{ConnectionTracking, EC2NodeClassSpec};

use super::{InterfaceType, NetworkInterface, TrackingTimeouts};

/// Those that the class lists; else one for each fabric adapter that is asked for; else one.
pub(super) fn of_class(
    class: &EC2NodeClassSpec,
    security_groups: &[String],
    is_ipv6: bool,
    efa_count: i64,
) -> Vec<NetworkInterface> {
    let tracking = class.connection_tracking.as_ref().and_then(timeouts);
    let interface = |card: Option<i32>, device_index: i32, interface_type: Option<InterfaceType>| {
        // EC2 refuses addresses on an interface that can have none.
        let has_addresses = interface_type != Some(InterfaceType::EfaOnly);
        let prefixes = class.ip_prefix_count.filter(|_| has_addresses);
        NetworkInterface {
            network_card_index: card,
            device_index,
            interface_type,
            security_groups: security_groups.to_vec(),
            associate_public_ip_address: class.associate_public_ip_address.filter(|_| has_addresses),
            ipv4_prefix_count: prefixes.filter(|_| !is_ipv6),
            ipv6_prefix_count: prefixes.filter(|_| is_ipv6),
            ipv6_address_count: (is_ipv6 && has_addresses).then_some(1),
            primary_ipv6: (is_ipv6 && has_addresses).then_some(true),
            connection_tracking: tracking.filter(|_| has_addresses),
        }
    };
    if !class.network_interfaces.is_empty() {
        let listed = class.network_interfaces.iter().map(|listed| {
            let kind = match listed.interface_type.as_deref() {
                Some("efa-only") => InterfaceType::EfaOnly,
                _ => InterfaceType::Interface,
            };
            interface(Some(listed.network_card_index), listed.device_index, Some(kind))
        });
        return listed.collect();
    }
    if efa_count > 0 {
        // One on each card. Only the first is device 0, so that it is the machine's own.
        let cards = 0..i32::try_from(efa_count).unwrap_or(i32::MAX);
        let adapter = |card: i32| interface(Some(card), i32::from(card > 0), Some(InterfaceType::Efa));
        return cards.map(adapter).collect();
    }
    vec![interface(None, 0, None)]
}

fn timeouts(tracking: &ConnectionTracking) -> Option<TrackingTimeouts> {
    let timeouts = TrackingTimeouts {
        tcp_established: tracking.tcp_established_timeout,
        udp_stream: tracking.udp_stream_timeout,
        udp: tracking.udp_timeout,
    };
    let says_nothing = [timeouts.tcp_established, timeouts.udp_stream, timeouts.udp].iter().all(Option::is_none);
    (!says_nothing).then_some(timeouts)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(spec: Value, is_ipv6: bool, efa_count: i64) -> Vec<NetworkInterface> {
        let mut class = json!({ "amiSelectorTerms": [{ "alias": "al2023@latest" }], "subnetSelectorTerms": [],
            "securityGroupSelectorTerms": [] });
        class.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        of_class(&serde_json::from_value(class).unwrap(), &["sg-1".to_owned()], is_ipv6, efa_count)
    }

    #[test]
    fn there_is_always_one() {
        let plain = of(json!({}), false, 0);
        assert_eq!(plain.len(), 1);
        assert_eq!((plain[0].security_groups.as_slice(), plain[0].device_index), (["sg-1".to_owned()].as_slice(), 0));
        assert_eq!((plain[0].associate_public_ip_address, plain[0].primary_ipv6), (None, None));
        let public = of(json!({ "associatePublicIPAddress": false, "ipPrefixCount": 2 }), false, 0);
        assert_eq!((public[0].associate_public_ip_address, public[0].ipv4_prefix_count), (Some(false), Some(2)));
    }

    #[test]
    fn in_clusters_of_ipv6_prefixes_are_too() {
        let found = of(json!({ "ipPrefixCount": 1 }), true, 0).remove(0);
        assert_eq!((found.ipv4_prefix_count, found.ipv6_prefix_count), (None, Some(1)));
        assert_eq!((found.primary_ipv6, found.ipv6_address_count), (Some(true), Some(1)));
    }

    #[test]
    fn each_fabric_adapter_has_a_card() {
        let found = of(json!({}), false, 3);
        let places: Vec<_> = found.iter().map(|it| (it.network_card_index, it.device_index)).collect();
        assert_eq!(places, [(Some(0), 0), (Some(1), 1), (Some(2), 1)]);
        assert!(found.iter().all(|it| it.interface_type == Some(InterfaceType::Efa)));
    }

    #[test]
    fn what_carries_no_addresses_is_given_none() {
        let spec = json!({ "associatePublicIPAddress": true, "ipPrefixCount": 1,
            "connectionTracking": { "udpTimeout": 30, "tcpEstablishedTimeout": 3600 },
            "networkInterfaces": [{ "networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface" },
                { "networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only" }] });
        let found = of(spec, true, 5);
        assert_eq!(found.len(), 2, "the class's own list counts");
        let tracking = TrackingTimeouts { tcp_established: Some(3600), udp_stream: None, udp: Some(30) };
        assert_eq!(found[0].connection_tracking, Some(tracking));
        let bare = &found[1];
        assert_eq!(bare.interface_type, Some(InterfaceType::EfaOnly));
        assert_eq!((bare.associate_public_ip_address, bare.ipv6_prefix_count, bare.primary_ipv6), (None, None, None));
        assert_eq!((bare.ipv6_address_count, bare.connection_tracking), (None, None));
        assert_eq!(bare.security_groups, ["sg-1"]);
    }

    #[test]
    fn no_timeouts_are_none() {
        assert_eq!(of(json!({ "connectionTracking": {} }), false, 0)[0].connection_tracking, None);
    }
}
