//! What EC2 means when it refuses: whether to try again, what to try instead, and what to remember.
//!
//! Sources: EC2's list of API error codes; the reference's `pkg/errors`, whose reasons are kept since people look for them; and the
//! corrections to it: a throttled answer says nothing about capacity (A#8923), a quota is no shortage of one offering, and an exhausted
//! subnet says nothing about its zone.

use crate::ports::PortErrorKind;

use self::FailureClass::{
    Addresses, Capacity, Conflict, Denied, Invalid, NotFound, NotYetKnown, Quota, Server, TemplateGone, Throttled,
    TokenTaken,
};

/// A code of EC2, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    pub class: FailureClass,
    pub remembered: Remembered,
    /// The reason on the NodeClaim's condition, in the reference's words where it has some.
    pub reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureClass {
    /// EC2 has none of it at present: another offering may do.
    Capacity,
    /// The account may have no more: other offerings under the same quota will not do either.
    Quota,
    /// A subnet has no addresses left.
    Addresses,
    /// A fault of EC2's own, which passes.
    Server,
    /// Too many calls: the same call later, and fewer of them.
    Throttled,
    /// A launch template is not there (any more): it is made again, and the call repeated.
    TemplateGone,
    /// What was made a moment ago is not known everywhere yet.
    NotYetKnown,
    /// The client token stands for another request: first find out what that one launched.
    TokenTaken,
    /// It is there already, or somebody uses it.
    Conflict,
    NotFound,
    /// No permission, or credentials that are not accepted.
    Denied,
    /// What was asked for is wrong and stays so until somebody changes it.
    Invalid,
}

/// What is not asked for again for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remembered {
    Nothing,
    /// This instance type in this zone in this capacity type.
    Offering,
    Subnet,
    Reservation,
    /// Every offering under the same quota, see [`quota_of`](crate::core::catalog::vcpu_quotas::quota_of).
    Quota,
    /// Every offering of the placement group in this zone.
    PlacementGroupInZone,
    /// Every spot offering.
    AllSpot,
}

impl FailureClass {
    /// Whether asking again later may help by itself, and nothing has been learnt until then. A template that was just made is not known
    /// everywhere at once.
    pub fn is_passing(self) -> bool {
        match self {
            Self::Throttled | Self::Server | Self::TemplateGone => true,
            Self::Capacity
            | Self::Quota
            | Self::Addresses
            | Self::NotYetKnown
            | Self::TokenTaken
            | Self::Conflict
            | Self::NotFound
            | Self::Denied
            | Self::Invalid => false,
        }
    }

    pub fn kind(self) -> PortErrorKind {
        match self {
            Self::Capacity | Self::Quota | Self::Addresses => PortErrorKind::InsufficientCapacity,
            Self::Server | Self::Throttled | Self::TemplateGone | Self::NotYetKnown => PortErrorKind::Temporary,
            Self::TokenTaken | Self::Conflict => PortErrorKind::Conflict,
            Self::NotFound => PortErrorKind::NotFound,
            Self::Denied => PortErrorKind::Denied,
            Self::Invalid => PortErrorKind::Permanent,
        }
    }
}

/// By code; [`classify`] looks at messages first, where one code means several things.
const CODES: &[(&str, FailureClass, Remembered, &str)] = &[
    // Shortages.
    ("InsufficientInstanceCapacity", Capacity, Remembered::Offering, "InsufficientInstanceCapacity"),
    ("InsufficientCapacity", Capacity, Remembered::Offering, "InsufficientInstanceCapacity"),
    ("InsufficientHostCapacity", Capacity, Remembered::Offering, "InsufficientInstanceCapacity"),
    // Of volumes, in the zone.
    ("InsufficientVolumeCapacity", Capacity, Remembered::Offering, "InsufficientVolumeCapacity"),
    ("InsufficientReservedInstanceCapacity", Capacity, Remembered::Offering, "InsufficientInstanceCapacity"),
    ("UnfulfillableCapacity", Capacity, Remembered::Offering, "UnfulfillableCapacity"),
    ("SpotMaxPriceTooLow", Capacity, Remembered::Offering, "UnfulfillableCapacity"),
    // "The requested configuration is currently not supported": of a type in a zone.
    ("Unsupported", Capacity, Remembered::Offering, "Unsupported"),
    ("InsufficientAddressCapacity", Capacity, Remembered::Nothing, "InsufficientAddressCapacity"),
    ("ReservationCapacityExceeded", Capacity, Remembered::Reservation, "ReservationCapacityExceeded"),
    ("InvalidCapacityReservationId.NotFound", Capacity, Remembered::Reservation, "CapacityReservationNotFound"),
    ("InvalidCapacityReservationState", Capacity, Remembered::Reservation, "CapacityReservationNotFound"),
    // Quotas of the account.
    ("VcpuLimitExceeded", Quota, Remembered::Quota, "VCPULimitExceeded"),
    ("InstanceLimitExceeded", Quota, Remembered::Quota, "VCPULimitExceeded"),
    ("MaxSpotInstanceCountExceeded", Quota, Remembered::Quota, "SpotQuotaExceeded"),
    ("MaxFleetCountExceeded", Quota, Remembered::Nothing, "FleetQuotaExceeded"),
    ("MaxTemplateLimitExceeded", Quota, Remembered::Nothing, "LaunchTemplateQuotaExceeded"),
    ("VolumeLimitExceeded", Quota, Remembered::Nothing, "VolumeQuotaExceeded"),
    ("NetworkInterfaceLimitExceeded", Quota, Remembered::Nothing, "NetworkInterfaceQuotaExceeded"),
    // IAM's and EKS' words; not among those that the SDK tries again.
    ("LimitExceeded", Quota, Remembered::Nothing, "QuotaExceeded"),
    ("LimitExceededException", Quota, Remembered::Nothing, "QuotaExceeded"),
    // Addresses; the latter where whole prefixes are asked for.
    ("InsufficientFreeAddressesInSubnet", Addresses, Remembered::Subnet, "InsufficientFreeAddressesInSubnet"),
    ("InsufficientCidrBlocks", Addresses, Remembered::Subnet, "InsufficientFreeAddressesInSubnet"),
    // Too many calls. The codes that the SDK knows as such, and IAM's.
    ("RequestLimitExceeded", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    ("Throttling", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    ("ThrottlingException", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    ("ThrottledException", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    ("RequestThrottled", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    ("RequestThrottledException", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    ("EC2ThrottledException", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    ("TooManyRequestsException", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    ("BandwidthLimitExceeded", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    ("PriorRequestNotComplete", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    ("TransactionInProgressException", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    ("ProvisionedThroughputExceededException", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    ("SlowDown", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    // The queue's, of the key that encrypts it.
    ("KmsThrottled", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    // The Systems Manager's.
    ("TooManyUpdates", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    // EC2's own faults.
    ("InternalError", Server, Remembered::Nothing, "InternalError"),
    ("InternalFailure", Server, Remembered::Nothing, "InternalError"),
    ("ServiceUnavailable", Server, Remembered::Nothing, "InternalError"),
    ("Unavailable", Server, Remembered::Nothing, "InternalError"),
    ("RequestTimeout", Server, Remembered::Nothing, "InternalError"),
    ("InternalServiceError", Server, Remembered::Nothing, "InternalError"),
    ("ServiceUnavailableException", Server, Remembered::Nothing, "InternalError"),
    ("ServerException", Server, Remembered::Nothing, "InternalError"),
    ("ServerInternal", Server, Remembered::Nothing, "InternalError"),
    // Those of the Systems Manager, of the Price List, of Service Quotas and of IAM.
    ("InternalServerError", Server, Remembered::Nothing, "InternalError"),
    ("InternalErrorException", Server, Remembered::Nothing, "InternalError"),
    ("ServiceException", Server, Remembered::Nothing, "InternalError"),
    ("ServiceFailure", Server, Remembered::Nothing, "InternalError"),
    // Somebody else changes it at this moment.
    ("ConcurrentTagAccess", Server, Remembered::Nothing, "InternalError"),
    ("EntityTemporarilyUnmodifiable", Server, Remembered::Nothing, "InternalError"),
    ("ConcurrentModificationException", Server, Remembered::Nothing, "InternalError"),
    ("ConcurrentModification", Server, Remembered::Nothing, "InternalError"),
    // Our own words where no answer came.
    ("Timeout", Server, Remembered::Nothing, "NoAnswer"),
    ("Unreachable", Server, Remembered::Nothing, "NoAnswer"),
    // Our own word where a call did not come to its turn.
    ("Waited", Throttled, Remembered::Nothing, "RequestLimitExceeded"),
    // The account is new; it passes by itself.
    ("PendingVerification", Server, Remembered::Nothing, "AccountPendingVerification"),
    // Our own things.
    ("InvalidLaunchTemplateName.NotFoundException", TemplateGone, Remembered::Nothing, "LaunchTemplateNotFound"),
    ("InvalidLaunchTemplateId.NotFound", TemplateGone, Remembered::Nothing, "LaunchTemplateNotFound"),
    ("InvalidLaunchTemplateId.VersionNotFound", TemplateGone, Remembered::Nothing, "LaunchTemplateNotFound"),
    ("InvalidLaunchTemplateName.AlreadyExistsException", Conflict, Remembered::Nothing, "AlreadyExists"),
    ("EntityAlreadyExists", Conflict, Remembered::Nothing, "AlreadyExists"),
    ("EntityAlreadyExistsException", Conflict, Remembered::Nothing, "AlreadyExists"),
    ("DeleteConflict", Conflict, Remembered::Nothing, "InUse"),
    ("IdempotentParameterMismatch", TokenTaken, Remembered::Nothing, "ClientTokenTaken"),
    ("IdempotentInstanceTerminated", TokenTaken, Remembered::Nothing, "ClientTokenTaken"),
    ("InvalidInstanceID.NotFound", NotFound, Remembered::Nothing, "NotFound"),
    ("QueueDoesNotExist", NotFound, Remembered::Nothing, "NotFound"),
    ("AWS.SimpleQueueService.NonExistentQueue", NotFound, Remembered::Nothing, "NotFound"),
    ("NoSuchEntityException", NotFound, Remembered::Nothing, "NotFound"),
    ("NoSuchResourceException", NotFound, Remembered::Nothing, "NotFound"),
    ("NoSuchEntity", NotFound, Remembered::Nothing, "NotFound"),
    ("ParameterNotFound", NotFound, Remembered::Nothing, "NotFound"),
    ("ResourceNotFoundException", NotFound, Remembered::Nothing, "NotFound"),
    // Permissions and credentials.
    ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", Denied, Remembered::AllSpot, "SpotSLRCreationFailed"),
    ("UnauthorizedOperation", Denied, Remembered::Nothing, "Unauthorized"),
    ("AccessDenied", Denied, Remembered::Nothing, "Unauthorized"),
    ("AccessDeniedException", Denied, Remembered::Nothing, "Unauthorized"),
    ("AuthFailure", Denied, Remembered::Nothing, "Unauthorized"),
    ("Blocked", Denied, Remembered::Nothing, "Unauthorized"),
    ("OptInRequired", Denied, Remembered::Nothing, "Unauthorized"),
    ("NotAuthorized", Denied, Remembered::Nothing, "Unauthorized"),
    ("NoCredentials", Denied, Remembered::Nothing, "CredentialsMissing"),
    ("ExpiredToken", Denied, Remembered::Nothing, "CredentialsExpired"),
    ("ExpiredTokenException", Denied, Remembered::Nothing, "CredentialsExpired"),
    // Also when the clock here is off by more than five minutes.
    ("RequestExpired", Denied, Remembered::Nothing, "CredentialsExpired"),
    ("SignatureDoesNotMatch", Denied, Remembered::Nothing, "CredentialsRefused"),
    ("InvalidSignatureException", Denied, Remembered::Nothing, "CredentialsRefused"),
    ("IncompleteSignature", Denied, Remembered::Nothing, "CredentialsRefused"),
    ("IncompleteSignatureException", Denied, Remembered::Nothing, "CredentialsRefused"),
    ("InvalidClientTokenId", Denied, Remembered::Nothing, "CredentialsRefused"),
    ("UnrecognizedClientException", Denied, Remembered::Nothing, "CredentialsRefused"),
    ("MissingAuthenticationToken", Denied, Remembered::Nothing, "CredentialsRefused"),
    ("MissingAuthenticationTokenException", Denied, Remembered::Nothing, "CredentialsRefused"),
    // What the class names and EC2 does not have.
    ("InvalidAMIID.NotFound", Invalid, Remembered::Nothing, "AMINotFound"),
    ("InvalidAMIID.Unavailable", Invalid, Remembered::Nothing, "AMINotFound"),
    ("InvalidAMIID.Malformed", Invalid, Remembered::Nothing, "InvalidAMIID"),
    ("InvalidSubnetID.NotFound", Invalid, Remembered::Subnet, "SubnetNotFound"),
    ("InvalidGroup.NotFound", Invalid, Remembered::Nothing, "SecurityGroupNotFound"),
    ("InvalidSecurityGroupID.NotFound", Invalid, Remembered::Nothing, "SecurityGroupNotFound"),
];

/// By what a message contains, before its code is looked at; an empty code stands for any.
const MESSAGES: &[(&str, &str, FailureClass, Remembered, &str)] = &[
    (
        "",
        "limit of instances in this spread placement group",
        Capacity,
        Remembered::PlacementGroupInZone,
        "InsufficientInstanceCapacity",
    ),
    // A new instance profile takes seconds until EC2 knows it.
    (
        "InvalidParameterValue",
        "Invalid IAM Instance Profile name",
        NotYetKnown,
        Remembered::Nothing,
        "InstanceProfileNameInvalid",
    ),
    ("", "iamInstanceProfile.name is invalid", NotYetKnown, Remembered::Nothing, "InstanceProfileNameInvalid"),
    ("", "belong to different networks", Invalid, Remembered::Nothing, "SecurityGroupSubnetVPCMismatch"),
    ("", "User data is limited to", Invalid, Remembered::Nothing, "UserDataSizeLimitExceeded"),
    ("", "not eligible for Free Tier", Invalid, Remembered::Nothing, "FreeTierIneligible"),
    ("AuthFailure", "validate the provided access credentials", Denied, Remembered::Nothing, "CredentialsRefused"),
    ("", "Not authorized for images", Denied, Remembered::Nothing, "AMIAuthorizationFailure"),
    (
        "InvalidFleetConfiguration",
        "is not supported in your requested Availability Zone",
        Capacity,
        Remembered::Offering,
        "Unsupported",
    ),
    ("InvalidInput", "body of the request is too large", Invalid, Remembered::Nothing, "RequestTooLarge"),
];

/// What a code and a message of EC2 mean. The code may have the prefix `Client.` or `Server.` that state reasons of instances have.
pub fn classify(code: &str, message: &str) -> Failure {
    let code = bare(code);
    if let Some(known) = known(code, message) {
        return known;
    }
    let class = match code {
        _ if [".NotFound", ".NotFoundException", ".Unknown"].iter().any(|end| code.ends_with(end)) => NotFound,
        _ if code.ends_with("LimitExceeded") || code.ends_with("CountExceeded") => Quota,
        _ if code.starts_with("AuthFailure.") || code.starts_with("UnauthorizedOperation") => Denied,
        // An answer that has no code was no answer of EC2's: a proxy, a gateway, a connection that broke.
        "" => Server,
        _ => Invalid,
    };
    Failure { class, remembered: Remembered::Nothing, reason: "LaunchFailed" }
}

/// Whether the tables say what it means; else it is judged by its form.
pub fn is_known(code: &str, message: &str) -> bool {
    known(bare(code), message).is_some()
}

fn bare(code: &str) -> &str {
    code.strip_prefix("Client.").or_else(|| code.strip_prefix("Server.")).unwrap_or(code)
}

fn known(code: &str, message: &str) -> Option<Failure> {
    let by_message = MESSAGES.iter().find(|(of, part, ..)| (of.is_empty() || *of == code) && message.contains(part));
    let by_message = by_message.map(|(_, _, class, remembered, reason)| (class, remembered, reason));
    let by_code = || {
        let listed = CODES.iter().find(|(listed, ..)| *listed == code)?;
        Some((&listed.1, &listed.2, &listed.3))
    };
    let (class, remembered, reason) = by_message.or_else(by_code)?;
    Some(Failure { class: *class, remembered: *remembered, reason })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_code_is_there_once() {
        let codes: BTreeSet<&str> = CODES.iter().map(|(code, ..)| *code).collect();
        assert_eq!(codes.len(), CODES.len());
    }

    #[test]
    fn shortages_quotas_and_throttling_are_kept_apart() {
        for (code, kind, remembered) in [
            ("InsufficientInstanceCapacity", PortErrorKind::InsufficientCapacity, Remembered::Offering),
            ("UnfulfillableCapacity", PortErrorKind::InsufficientCapacity, Remembered::Offering),
            ("Unsupported", PortErrorKind::InsufficientCapacity, Remembered::Offering),
            ("VcpuLimitExceeded", PortErrorKind::InsufficientCapacity, Remembered::Quota),
            ("MaxSpotInstanceCountExceeded", PortErrorKind::InsufficientCapacity, Remembered::Quota),
            ("InsufficientFreeAddressesInSubnet", PortErrorKind::InsufficientCapacity, Remembered::Subnet),
            ("ReservationCapacityExceeded", PortErrorKind::InsufficientCapacity, Remembered::Reservation),
            ("RequestLimitExceeded", PortErrorKind::Temporary, Remembered::Nothing),
            ("ProvisionedThroughputExceededException", PortErrorKind::Temporary, Remembered::Nothing),
            ("TransactionInProgressException", PortErrorKind::Temporary, Remembered::Nothing),
            ("InvalidSignatureException", PortErrorKind::Denied, Remembered::Nothing),
            ("InternalError", PortErrorKind::Temporary, Remembered::Nothing),
            ("ServerInternal", PortErrorKind::Temporary, Remembered::Nothing),
            ("InternalServerError", PortErrorKind::Temporary, Remembered::Nothing),
            ("ConcurrentTagAccess", PortErrorKind::Temporary, Remembered::Nothing),
            ("InsufficientVolumeCapacity", PortErrorKind::InsufficientCapacity, Remembered::Offering),
            ("InvalidLaunchTemplateName.NotFoundException", PortErrorKind::Temporary, Remembered::Nothing),
            ("IdempotentParameterMismatch", PortErrorKind::Conflict, Remembered::Nothing),
            ("UnauthorizedOperation", PortErrorKind::Denied, Remembered::Nothing),
            ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", PortErrorKind::Denied, Remembered::AllSpot),
            ("InvalidAMIID.NotFound", PortErrorKind::Permanent, Remembered::Nothing),
        ] {
            let failure = classify(code, "");
            assert_eq!((failure.class.kind(), failure.remembered), (kind, remembered), "{code}");
        }
    }

    #[test]
    fn messages_say_more_than_codes() {
        let of = |code, message| {
            let failure = classify(code, message);
            (failure.class, failure.remembered, failure.reason)
        };
        let spread = "You've reached the limit of instances in this spread placement group.";
        assert_eq!(of("InsufficientInstanceCapacity", spread).1, Remembered::PlacementGroupInZone);
        let profile =
            "Value (demo) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name";
        assert_eq!(of("InvalidParameterValue", profile).0, NotYetKnown);
        assert_eq!(of("InvalidParameterValue", "something else").0, Invalid);
        let zone =
            "Your requested instance type (p5.48xlarge) is not supported in your requested Availability Zone (a).";
        assert_eq!(of("InvalidFleetConfiguration", zone).1, Remembered::Offering);
        assert_eq!(of("InvalidFleetConfiguration", "no target").0, Invalid);
        assert_eq!(
            of("InvalidUserData.Malformed", "User data is limited to 16384 bytes").2,
            "UserDataSizeLimitExceeded"
        );
        let refused = "AWS was not able to validate the provided access credentials";
        assert_eq!(of("AuthFailure", refused).2, "CredentialsRefused");
        assert_eq!(of("AuthFailure", "Not authorized for images: [ami-1]").2, "AMIAuthorizationFailure");
        assert_eq!(of("UnauthorizedOperation", "Not authorized for images: [ami-1]").2, "AMIAuthorizationFailure");
    }

    #[test]
    fn codes_that_are_not_listed_are_judged_by_their_form() {
        for (code, class) in [
            ("Server.InsufficientInstanceCapacity", Capacity),
            ("Client.VolumeLimitExceeded", Quota),
            ("InvalidKeyPair.NotFound", NotFound),
            ("HostLimitExceeded", Quota),
            ("AuthFailure.Other", Denied),
            ("InvalidParameterCombination", Invalid),
            ("", Server),
        ] {
            assert_eq!(classify(code, "").class, class, "{code}");
        }
    }
}
