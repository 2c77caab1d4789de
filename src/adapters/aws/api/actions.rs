//! Every action of AWS that is called, or that a call needs, with its reason: the policy in `deploy/iam` is made of this table, and metrics,
//! buckets and errors name actions by it.

use std::fmt;

/// What an action is allowed on, and under which condition: one statement of the policy each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActionScope {
    /// Reading, in the region. EC2 has no narrower resources for most of it.
    SeeWhatEc2Sells,
    SeePrices,
    SeeQuotas,
    ReadImageAliases,
    FindTheCluster,
    ExplainRefusals,
    /// Images, snapshots, groups, subnets, reservations: used, and not changed.
    LaunchFromWhatIsThere,
    LaunchFromOwnTemplates,
    CreateOnlyWithTheClustersTags,
    TagWhileCreating,
    NameInstancesLater,
    RemoveOnlyItsOwn,
    HearOfInterruptions,
    GiveNodesTheirRole,
    FindInstanceProfiles,
    CreateInstanceProfiles,
    ChangeOnlyItsOwnInstanceProfiles,
}

/// Makes the type of actions, with the table of what each is for.
macro_rules! actions {
    ($($service:literal $action:ident $scopes:expr, $why:literal;)*) => {
        /// An action of AWS, with the API's own name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Action {
            $(#[doc = $why] $action,)*
        }

        /// All of them.
        pub const ACTIONS: &[Action] = &[$(Action::$action),*];

        impl Action {
            /// As IAM writes it: `ec2:CreateFleet`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$action => concat!($service, ":", stringify!($action)),)* }
            }

            /// What is not possible without it.
            pub const fn why(self) -> &'static str {
                match self { $(Self::$action => $why,)* }
            }

            /// Where the policy allows it.
            pub const fn scopes(self) -> &'static [ActionScope] {
                match self { $(Self::$action => $scopes,)* }
            }
        }
    };
}

actions! {
    "ec2" DescribeAvailabilityZones &[ActionScope::SeeWhatEc2Sells], "ids of zones, which differ from account to account";
    "ec2" DescribeCapacityReservations &[ActionScope::SeeWhatEc2Sells], "reservations that classes select, and how much of each is left";
    "ec2" DescribeImages &[ActionScope::SeeWhatEc2Sells], "images that classes select: architecture, age, deprecation";
    "ec2" DescribeInstances &[ActionScope::SeeWhatEc2Sells], "instances that run: adoption, orphans, drift, quotas used";
    "ec2" DescribeInstanceStatus &[ActionScope::SeeWhatEc2Sells], "instances with failed checks or with a scheduled end";
    "ec2" DescribeInstanceTypeOfferings &[ActionScope::SeeWhatEc2Sells], "in which zones a type is sold";
    "ec2" DescribeInstanceTypes &[ActionScope::SeeWhatEc2Sells], "what an instance type has";
    "ec2" DescribeLaunchTemplates &[ActionScope::SeeWhatEc2Sells], "templates of before, which are used again or swept";
    "ec2" DescribePlacementGroups &[ActionScope::SeeWhatEc2Sells], "placement groups that classes select";
    "ec2" DescribeSecurityGroups &[ActionScope::SeeWhatEc2Sells], "security groups that classes select";
    "ec2" DescribeSpotPriceHistory &[ActionScope::SeeWhatEc2Sells], "prices of spot instances";
    "ec2" DescribeSubnets &[ActionScope::SeeWhatEc2Sells], "subnets that classes select, and their free addresses";
    "pricing" GetProducts &[ActionScope::SeePrices], "prices on demand; without it those in the program are used";
    "servicequotas" GetServiceQuota &[ActionScope::SeeQuotas], "quotas, so that a plan says what would not fit";
    "ssm" GetParameters &[ActionScope::ReadImageAliases], "images that an alias means";
    "eks" DescribeCluster &[ActionScope::FindTheCluster], "endpoint, certificates, version and service addresses for nodes";
    "ec2" DescribeRegions &[], "the built-in catalog is made of all regions; the controller does not ask";
    "sts" GetCallerIdentity &[], "the account; needs no permission";
    "sts" DecodeAuthorizationMessage &[ActionScope::ExplainRefusals], "says which permission EC2 missed";
    "ec2" CreateFleet
        &[ActionScope::LaunchFromWhatIsThere, ActionScope::LaunchFromOwnTemplates, ActionScope::CreateOnlyWithTheClustersTags],
        "launches instances";
    "ec2" RunInstances
        &[ActionScope::LaunchFromWhatIsThere, ActionScope::LaunchFromOwnTemplates, ActionScope::CreateOnlyWithTheClustersTags],
        "part of a fleet; called as a dry run only, which says beforehand what would be denied";
    "ec2" CreateLaunchTemplate &[ActionScope::CreateOnlyWithTheClustersTags], "what instances are launched from";
    "ec2" CreateTags &[ActionScope::TagWhileCreating, ActionScope::NameInstancesLater],
        "tags of what is created; later the names of node and claim";
    "ec2" DeleteLaunchTemplate &[ActionScope::RemoveOnlyItsOwn], "sweeps templates that nothing uses";
    "ec2" TerminateInstances &[ActionScope::RemoveOnlyItsOwn], "ends instances";
    "sqs" GetQueueUrl &[ActionScope::HearOfInterruptions], "finds the queue";
    "sqs" ReceiveMessage &[ActionScope::HearOfInterruptions], "hears of interruptions";
    "sqs" DeleteMessage &[ActionScope::HearOfInterruptions], "takes a message off the queue once it was acted on";
    "iam" PassRole &[ActionScope::GiveNodesTheirRole], "never called: an instance with a profile needs it";
    "iam" GetInstanceProfile &[ActionScope::FindInstanceProfiles], "a profile is looked for before one is made";
    "iam" ListInstanceProfiles &[ActionScope::FindInstanceProfiles], "profiles of classes that are gone";
    "iam" CreateInstanceProfile &[ActionScope::CreateInstanceProfiles], "gives a class with a role its profile";
    "iam" TagInstanceProfile &[ActionScope::CreateInstanceProfiles], "never called: a profile is made with its tags";
    "iam" AddRoleToInstanceProfile &[ActionScope::ChangeOnlyItsOwnInstanceProfiles], "puts the role into the profile";
    "iam" RemoveRoleFromInstanceProfile &[ActionScope::ChangeOnlyItsOwnInstanceProfiles], "empties a profile before it goes";
    "iam" DeleteInstanceProfile &[ActionScope::ChangeOnlyItsOwnInstanceProfiles], "removes a profile that nothing uses";
}

impl Action {
    /// `ec2`
    pub fn service(self) -> &'static str {
        self.name().split(':').next().unwrap_or_default()
    }
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
