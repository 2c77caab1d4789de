//! What a reader of a plan should know beside its steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::definition_place::with_place;
use super::{DefinitionPlace, DefinitionPlaces};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    pub code: NoteCode,
    pub text: String,
    /// The one object that it is about; absent where it is about several, or about none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<NoteSubject>,
    /// All pods that it is about, as `namespace/name`; the text names some of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<String>,
    /// Where the definitions have what it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionPlace>,
    /// The text without the object that it begins with, for those who name that themselves. What is published has the text alone.
    #[serde(skip)]
    pub predicate: Option<String>,
}

/// The object that a note is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct NoteSubject {
    /// `NodePool`, `EC2NodeClass`, `NodeOverlay`, `CapacityBuffer`, `PodTemplate` or `DisruptionBudget`.
    pub kind: String,
    /// With its namespace where it has one: `shop/spare`.
    pub name: String,
}

impl Note {
    pub fn new(code: NoteCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), about: None, pods: Vec::new(), definition: None, predicate: None }
    }

    pub fn about(self, kind: &str, name: &str) -> Self {
        Self { about: Some(NoteSubject { kind: kind.to_owned(), name: name.to_owned() }), ..self }
    }

    pub fn about_pods(self, pods: Vec<String>) -> Self {
        Self { pods, ..self }
    }

    /// What is true of an object, which the text begins with.
    pub fn of(code: NoteCode, (kind, name): (&str, &str), predicate: impl Into<String>) -> Self {
        let predicate = predicate.into();
        let note = Self::new(code, format!("{kind} {name} {predicate}")).about(kind, name);
        Self { predicate: Some(predicate), ..note }
    }

    pub fn about_pool(self, name: &str) -> Self {
        self.about("NodePool", name)
    }

    /// With the place of a field; where nothing is known of it, or nobody names one, that of the object comes with the plan.
    pub fn at(self, definition: Option<DefinitionPlace>) -> Self {
        Self { definition, ..self }
    }

    /// With the place of the object that it is about, unless a field of it was named.
    pub fn with_place(self, places: &DefinitionPlaces) -> Self {
        let of = |about: &NoteSubject| places.of(&about.kind, &about.name, "");
        let definition = self.definition.or_else(|| self.about.as_ref().and_then(of));
        Self { definition, predicate: None, ..self }
    }

    /// As people read it.
    pub fn sentence(&self) -> String {
        with_place(&self.text, self.definition.as_ref())
    }
}

/// One code, one meaning, never reused. In the order of the alphabet, which is that of the notes of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum NoteCode {
    /// Nobody says in which zones a class has subnets: every zone of the region counts.
    AllZonesAssumed,
    /// No node of the snapshot belongs to a NodePool of the definitions.
    AnotherCluster,
    /// The revision asks for less approval than the one before it, whose rules still count for it.
    ApprovalRulesLoosened,
    /// The simulation approved what somebody would have had to approve.
    ApprovedAutomatically,
    /// Whether some pods find their places depends on the order in which kube-scheduler takes them.
    BindingOrderMatters,
    /// The plan breaks a rule of Kubernetes or of the definitions, by a mistake in Cutlist: nothing of it is done.
    BreaksRule,
    /// A CapacityBuffer is left out, because its template or its pods can not be found out.
    CapacityBufferNotReady,
    /// A capacity reservation ends soon, or has fewer instances left than are wanted.
    CapacityReservation,
    /// There are more ways to let pods in than were tried.
    ChangesNotTried,
    /// The clock is behind the moment at which something in the snapshot happened.
    ClockBehind,
    /// Something of EC2 could not be asked, or is as it was a while ago.
    CloudNotKnown,
    /// The cluster, or some of it, could not be read.
    Cluster,
    /// Instances with the name of this cluster are of another one.
    ClusterNameShared,
    /// More nodes of a removed NodePool would go than may without a confirmation.
    ConfirmationNeeded,
    /// New nodes of a static NodePool have no room for all of their DaemonSets.
    DaemonSetsWithoutRoom,
    /// Something that may drift nodes can only be known from EC2.
    DriftNotForeseen,
    /// Nodes have security groups that their class does not select: somebody attached them.
    ExtraSecurityGroups,
    /// What a file of facts has is about another definition of an EC2NodeClass.
    FactsOfOtherClass,
    /// A feature gate of `cutlist.yaml` is off that something in the definitions needs.
    FeatureGateOff,
    /// Images are locked for other terms than an EC2NodeClass has: they do not count.
    ImageLockOutdated,
    /// The images of an EC2NodeClass are not locked, which the settings require: it launches nothing.
    ImagesNotLocked,
    /// An instance that no NodeClaim knew has one again.
    InstanceAdopted,
    /// Instances of a NodePool ended before their nodes joined.
    InstancesEndedEarly,
    /// An instance runs that no NodeClaim knows.
    InstanceWithoutNodeClaim,
    /// EC2 lately had none of some offerings.
    InsufficientCapacity,
    /// An annotation that keeps pods from being moved says nothing that is understood.
    InvalidDoNotDisruptAnnotation,
    /// Definitions that can not be read are left out.
    LeftOut,
    /// New pods are so important that others may have to go for them.
    MayPreempt,
    /// Fewer different instance types were asked for than `minValues` wants.
    MinValuesLowered,
    /// Pods select namespaces by labels that are not in the snapshot.
    NamespaceUnknown,
    /// There are no definitions, so there is nothing to plan for.
    NoDefinitions,
    /// No snapshot was given: the plan is for an empty cluster.
    NoSnapshot,
    /// A NodeClaim names an instance that EC2 does not know.
    NodeClaimWithoutInstance,
    /// A NodePool names an EC2NodeClass that is nowhere.
    NodeClassMissing,
    /// The cluster says of an EC2NodeClass that no node can be made of it.
    NodeClassNotReady,
    /// An EC2NodeClass is not in the definitions: the one of the cluster counts.
    NodeClassOfCluster,
    /// Pods are bound to nodes that the snapshot does not have.
    NodeMissing,
    /// A NodeOverlay changes what instance types cost or hold.
    NodeOverlayApplied,
    /// NodeOverlays of one weight contradict each other; this one is not applied.
    NodeOverlayConflict,
    /// A NodeOverlay changes nothing.
    NodeOverlayUnused,
    /// EKS Auto Mode makes the nodes of a NodePool.
    NodePoolOfAutoMode,
    /// Karpenter with the provider of another cloud makes the nodes of a NodePool.
    NodePoolOfAnotherProvider,
    /// Nodes belong to nobody here: they are neither Cutlist's nor Karpenter's.
    NodesOfNobody,
    /// Nodes of NodePools have no NodeClaim in the snapshot.
    NodesWithoutClaim,
    /// An object of the cluster can not be read; it is left out.
    ObjectUnreadable,
    /// A definition has the name of another installation's object in the cluster: it is set aside.
    OfAnotherInstallation,
    /// It is not known what a RuntimeClass takes beside the containers of a DaemonSet.
    OverheadNotKnown,
    /// Flux or Argo CD change objects after they were read from files, in a way that is not carried out here.
    PatchedElsewhere,
    /// What `penalties` of `cutlist.yaml` added to the price that was compared.
    PenaltiesCounted,
    /// `penalties` of `cutlist.yaml` do not count with this packing.
    PenaltiesIgnored,
    /// Pods lost the place that an earlier plan had for them.
    PlaceLost,
    /// Pods are left without a place, because theirs would break a rule, by a mistake in Cutlist; all others are planned for.
    PlaceWithheld,
    /// The judge did not try all places of pods and all that may be launched for them, since that would take too long; all else it did.
    PlacesNotJudged,
    /// A node has no price in the catalog.
    PriceUnknown,
    /// There is no price table for the region: the prices are those of another one.
    PricesOfOtherRegion,
    /// Nodes, or NodeClaims, have one provider ID: which of them is of the instance is not known.
    ProviderIdShared,
    /// A node that was bought for pods is refused by kube-scheduler, and not bought again for a while.
    RefusedByScheduler,
    /// Nobody says which region this is.
    RegionAssumed,
    /// The region is the one of the zones that NodePools name.
    RegionOfZones,
    /// An annotation that confirms a removal counts in the cluster only, not in Git.
    RemovalConfirmedInDefinitions,
    /// The repository belongs to another user of the machine.
    RepositoryOfAnotherUser,
    /// The repository can not be read for a while: whether there is a newer revision is not known.
    RepositoryUnreachable,
    /// Capacity reservations that a class selects are not planned with.
    ReservationsNotPlanned,
    /// There are more risks than a plan lists.
    RisksLeftOut,
    /// New nodes of a NodePool did not become ready: no more of its nodes are replaced.
    RolloutHalted,
    /// It is not known how much room running pods take.
    RoomNotKnown,
    /// The search ended at its limit of work: there may be a better plan.
    SearchEnded,
    /// Something in the snapshot is not as it should be.
    Snapshot,
    /// Some kind of the cluster is not known as it is now.
    SnapshotIncomplete,
    /// Spot prices are an assumption.
    SpotPricesAssumed,
    /// A static NodePool has fewer nodes than it asks for.
    StaticCapacityLimited,
    /// Submodules of the repository are not read.
    SubmodulesLeftOut,
    /// Symbolic links of the repository are not followed.
    SymbolicLinksLeftOut,
    /// Some instance types have no image among those that are locked for their EC2NodeClass: they are not launched.
    TypesWithoutLockedImage,
    /// The folder is not as its commit says.
    UncommittedChanges,
    /// Nodes are of instance types that the catalog does not have.
    UnknownInstanceTypes,
    /// What is to be known of variables in the definitions.
    Variables,
    /// The nodes that go do so in several waves.
    Waves,
    /// Nodes with Windows are priced as if they had Linux.
    WindowsPricedAsLinux,
}
