package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	provisioner "sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// world is the reference, ready to schedule: its cluster state is filled, as informers keep it filled.
type world struct {
	cluster     *state.Cluster
	provisioner *provisioning.Provisioner
	store       *store
	recorder    events.Recorder
	options     *options.Options
}

// pass is one scheduling of everything that waits.
type pass struct {
	// PrepareSeconds: copying the state, listing and validating pods, building topology and scheduler.
	PrepareSeconds float64 `json:"prepareSeconds"`
	SolveSeconds   float64 `json:"solveSeconds"`
	// OrderSeconds: putting the types of each new node in the order of their prices, which follows outside of the limit.
	OrderSeconds  float64 `json:"orderSeconds"`
	OrderComplete bool    `json:"orderComplete"`
	TimedOut      bool    `json:"timedOut"`
	PricePerHour  float64 `json:"pricePerHour"`
	NodeCount     int     `json:"nodeCount"`
	PodCount      int     `json:"podCount"`
	UnplacedCount int     `json:"unplacedCount"`
	// Placements: pod to node, of the pods that go on nodes that exist.
	Placements map[string]string `json:"placements,omitempty"`
	Nodes      []newNode         `json:"nodes,omitempty"`
	Unplaced   map[string]string `json:"unplaced,omitempty"`
}

// newNode is a node that would be launched. The offering is the cheapest of those that the launch may use.
type newNode struct {
	NodePool      string   `json:"nodePool"`
	InstanceType  string   `json:"instanceType"`
	Zone          string   `json:"zone"`
	CapacityType  string   `json:"capacityType"`
	PricePerHour  float64  `json:"pricePerHour"`
	InstanceTypes []string `json:"instanceTypes,omitempty"`
	Pods          []string `json:"pods,omitempty"`
}

func newWorld(
	ctx context.Context, s settings, objects *store, sells *provider, recorder events.Recorder, clock clock.Clock,
) (*world, error) {
	settings := options.Options{
		BatchMaxDuration:  10 * time.Second,
		BatchIdleDuration: time.Second,
		CPURequests:       int64(s.workers) * 1000,
		PreferencePolicy:  options.PreferencePolicy(s.preferencePolicy),
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: true,
		FeatureGates:      options.DefaultFeatureGates(),
	}
	if p := settings.PreferencePolicy; p != options.PreferencePolicyRespect && p != options.PreferencePolicyIgnore {
		return nil, fmt.Errorf("-preference-policy is Respect or Ignore, not %q", p)
	}
	for _, pool := range all[v1.NodePool](objects) {
		pool.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
		pool.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
	}
	settings.FeatureGates.SpotToSpotConsolidation = s.spotToSpot
	cluster := state.NewCluster(clock, objects, sells)
	w := &world{
		cluster:     cluster,
		provisioner: provisioning.NewProvisioner(objects, recorder, sells, cluster, clock, nil, nil),
		store:       objects,
		recorder:    recorder,
		options:     &settings,
	}
	return w, w.fill(w.context(ctx))
}

func (w *world) context(ctx context.Context) context.Context {
	return options.ToContext(injection.WithControllerName(ctx, "provisioner"), w.options)
}

func (w *world) fill(ctx context.Context) error {
	for _, claim := range all[v1.NodeClaim](w.store) {
		w.cluster.UpdateNodeClaim(claim)
	}
	for _, node := range all[corev1.Node](w.store) {
		if err := w.cluster.UpdateNode(ctx, node); err != nil {
			return err
		}
	}
	for _, pod := range all[corev1.Pod](w.store) {
		// A pod may be bound to a node that is gone; the reference then waits for the pod to go too.
		if err := w.cluster.UpdatePod(ctx, pod); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	for _, daemonSet := range all[appsv1.DaemonSet](w.store) {
		if err := w.cluster.UpdateDaemonSet(ctx, daemonSet); err != nil {
			return err
		}
	}
	return nil
}

// pass does what the reference's Provisioner.Schedule does, with a watch in hand.
func (w *world) pass(ctx context.Context, s settings) (pass, error) {
	ctx = w.context(ctx)
	runtime.GC()
	start := time.Now()
	scheduler, pods, err := w.prepare(ctx, s)
	if err != nil {
		return pass{}, err
	}
	done := pass{PrepareSeconds: time.Since(start).Seconds(), PodCount: len(pods)}

	start = time.Now()
	limited, cancel := context.WithTimeout(ctx, s.limit)
	results, err := scheduler.Solve(limited, pods)
	cancel()
	done.SolveSeconds = time.Since(start).Seconds()
	done.TimedOut = errors.Is(err, context.DeadlineExceeded)
	if err != nil && !done.TimedOut {
		return pass{}, err
	}
	done.order(ctx, results, s.limit)
	return done, done.describe(results, pods, s.summary)
}

func (w *world) prepare(ctx context.Context, s settings) (*provisioner.Scheduler, []*corev1.Pod, error) {
	nodes := w.cluster.DeepCopyNodes()
	pods, err := w.provisioner.GetPendingPods(ctx)
	if err != nil {
		return nil, nil, err
	}
	leaving, err := nodes.Deleting().CurrentlyReschedulablePods(ctx, w.store, clock.RealClock{}, w.recorder)
	if err != nil {
		return nil, nil, err
	}
	uids := sets.New[types.UID]()
	for _, pod := range leaving {
		uids.Insert(pod.UID)
	}
	how := []provisioner.Options{
		provisioner.DisableReservedCapacityFallback,
		provisioner.NumConcurrentReconciles(s.workers),
		provisioner.MinValuesPolicy(w.options.MinValuesPolicy),
	}
	if w.options.PreferencePolicy == options.PreferencePolicyIgnore {
		how = append(how, provisioner.IgnorePreferences)
	}
	pods = append(pods, leaving...)
	scheduler, err := w.provisioner.NewScheduler(ctx, pods, nodes.Active(), uids, how...)
	return scheduler, pods, err
}

// order sorts and cuts the list of each new node as the reference does before it creates the claim. Its own loop has no
// limit; this one stops between two nodes.
func (p *pass) order(ctx context.Context, results provisioner.Results, limit time.Duration) {
	start := time.Now()
	p.OrderComplete = true
	for _, claim := range results.NewNodeClaims {
		if time.Since(start) > limit {
			p.OrderComplete = false
			break
		}
		if cut, err := claim.InstanceTypeOptions.Truncate(ctx, claim.Requirements, provisioner.MaxInstanceTypes); err == nil {
			claim.InstanceTypeOptions = cut
		}
	}
	p.OrderSeconds = time.Since(start).Seconds()
}

func (p *pass) describe(results provisioner.Results, pods []*corev1.Pod, summary bool) error {
	waiting := map[string]string{}
	for _, pod := range pods {
		waiting[name(pod)] = "not looked at before the limit"
	}
	for pod, err := range results.PodErrors {
		waiting[name(pod)] = err.Error()
	}
	p.Placements = map[string]string{}
	for _, node := range results.ExistingNodes {
		for _, pod := range node.Pods {
			p.Placements[name(pod)] = node.Name()
			delete(waiting, name(pod))
		}
	}
	for _, claim := range results.NewNodeClaims {
		node, err := describeClaim(claim)
		if err != nil {
			return err
		}
		for _, pod := range node.Pods {
			delete(waiting, pod)
		}
		p.PricePerHour += node.PricePerHour
		p.Nodes = append(p.Nodes, node)
	}
	p.Unplaced = waiting
	p.NodeCount, p.UnplacedCount = len(p.Nodes), len(waiting)
	if summary {
		p.Nodes, p.Placements, p.Unplaced = nil, nil, nil
	}
	return nil
}

func describeClaim(claim *provisioner.NodeClaim) (newNode, error) {
	node := newNode{NodePool: claim.NodePoolName}
	for _, pod := range claim.Pods {
		node.Pods = append(node.Pods, name(pod))
	}
	slices.Sort(node.Pods)
	type sold struct {
		instanceType, zone, capacityType string
		price                            float64
	}
	var cheapest []sold
	for _, it := range claim.InstanceTypeOptions {
		node.InstanceTypes = append(node.InstanceTypes, it.Name)
		for _, o := range it.Offerings.Available() {
			if claim.Requirements.IsCompatible(o.Requirements, scheduling.AllowUndefinedWellKnownLabels) {
				one := sold{it.Name, o.Zone(), o.CapacityType(), o.Price}
				if len(cheapest) == 0 || one.price <= cheapest[0].price {
					if len(cheapest) > 0 && one.price < cheapest[0].price {
						cheapest = nil
					}
					cheapest = append(cheapest, one)
				}
			}
		}
	}
	if len(cheapest) == 0 {
		return node, fmt.Errorf("a node of pool %s has no offering left", claim.NodePoolName)
	}
	slices.SortFunc(cheapest, func(a, b sold) int {
		return cmp.Or(cmp.Compare(a.instanceType, b.instanceType), cmp.Compare(a.zone, b.zone),
			cmp.Compare(a.capacityType, b.capacityType))
	})
	best := cheapest[0]
	node.InstanceType, node.Zone, node.CapacityType, node.PricePerHour = best.instanceType, best.zone, best.capacityType, best.price
	return node, nil
}

func name(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
