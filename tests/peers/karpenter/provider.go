package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

const (
	awsGroup    = "karpenter.k8s.aws"
	zoneIDLabel = "topology.k8s.aws/zone-id"
)

// awsLabels are those that the AWS provider tells the scheduler about: a requirement on one of them needs no label of the pool.
// Source: Karpenter's AWS provider 1.14, pkg/apis/v1/labels.go.
var awsLabels = sets.New(
	zoneIDLabel,
	awsGroup+"/capacity-reservation-id",
	awsGroup+"/capacity-reservation-interruptible",
	awsGroup+"/capacity-reservation-type",
	awsGroup+"/instance-accelerator-count",
	awsGroup+"/instance-accelerator-manufacturer",
	awsGroup+"/instance-accelerator-name",
	awsGroup+"/instance-capability-flex",
	awsGroup+"/instance-category",
	awsGroup+"/instance-cpu",
	awsGroup+"/instance-cpu-manufacturer",
	awsGroup+"/instance-cpu-sustained-clock-speed-mhz",
	awsGroup+"/instance-ebs-bandwidth",
	awsGroup+"/instance-encryption-in-transit-supported",
	awsGroup+"/instance-family",
	awsGroup+"/instance-generation",
	awsGroup+"/instance-gpu-count",
	awsGroup+"/instance-gpu-manufacturer",
	awsGroup+"/instance-gpu-memory",
	awsGroup+"/instance-gpu-name",
	awsGroup+"/instance-hypervisor",
	awsGroup+"/instance-local-nvme",
	awsGroup+"/instance-memory",
	awsGroup+"/instance-network-bandwidth",
	awsGroup+"/instance-size",
	awsGroup+"/instance-tenancy",
	awsGroup+"/placement-group-id",
	awsGroup+"/placement-group-partition",
)

func init() {
	v1.WellKnownLabels.Insert(awsLabels.UnsortedList()...)
	v1.RestrictedLabelDomains.Insert(awsGroup)
	version := schema.GroupVersion{Group: awsGroup, Version: "v1"}
	metav1.AddToGroupVersion(scheme.Scheme, version)
	scheme.Scheme.AddKnownTypes(version, &EC2NodeClass{})
}

// EC2NodeClass is as much of the AWS provider's kind as scheduling looks at: that it is there. The catalog says what its
// instances are.
type EC2NodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	conditions        []status.Condition
}

func (c *EC2NodeClass) GetConditions() []status.Condition { return c.conditions }

func (c *EC2NodeClass) SetConditions(conditions []status.Condition) { c.conditions = conditions }

func (c *EC2NodeClass) StatusConditions(options ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions().For(c, options...)
}

func (c *EC2NodeClass) DeepCopyObject() runtime.Object {
	return &EC2NodeClass{
		TypeMeta:   c.TypeMeta,
		ObjectMeta: *c.ObjectMeta.DeepCopy(),
		conditions: append([]status.Condition(nil), c.conditions...),
	}
}

// provider sells what the catalog lists, and launches nothing.
type provider struct {
	instanceTypes []*cloudprovider.InstanceType
}

var errReadOnly = errors.New("nothing is launched here")

func (p *provider) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return p.instanceTypes, nil
}

// find gives the type of that name.
func (p *provider) find(name string) (*cloudprovider.InstanceType, error) {
	for _, it := range p.instanceTypes {
		if it.Name == name {
			return it, nil
		}
	}
	return nil, fmt.Errorf("the catalog has no %s", name)
}

// price of an hour of a node with these labels; nothing where the catalog does not know it, as for the reference.
func (p *provider) price(labels map[string]string) float64 {
	sold, err := p.find(labels[corev1.LabelInstanceTypeStable])
	if err != nil {
		return 0
	}
	price, _ := sold.OfferingPrice(labels[corev1.LabelTopologyZone], labels[v1.CapacityTypeLabelKey])
	return price
}

func (p *provider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&EC2NodeClass{}}
}

func (p *provider) Name() string { return "catalog" }

func (p *provider) IsDrifted(context.Context, *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	return "", nil
}

func (p *provider) RepairPolicies() []cloudprovider.RepairPolicy { return nil }

func (p *provider) Create(context.Context, *v1.NodeClaim) (*v1.NodeClaim, error) {
	return nil, errReadOnly
}

func (p *provider) Delete(context.Context, *v1.NodeClaim) error { return errReadOnly }

func (p *provider) Get(context.Context, string) (*v1.NodeClaim, error) { return nil, errReadOnly }

func (p *provider) List(context.Context) ([]*v1.NodeClaim, error) { return nil, errReadOnly }
