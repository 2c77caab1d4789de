package main

import (
	"cmp"
	"context"
	"math/rand"
	"slices"

	corev1 "k8s.io/api/core/v1"
	provisioner "sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"
	"sigs.k8s.io/karpenter/pkg/utils/resources"
)

// evictionSeed is for the order in which pods come back that leave together: their evictions race.
const evictionSeed = 1

// asScheduled says where kube-scheduler puts the pods of nodes that leave. It knows nothing of the reference's simulation: one after
// another they go to the least allocated node that takes them, ties by name. What a node takes is the reference's own judgement.
// Pods that find no node are not in the result.
func (d *disrupter) asScheduled(ctx context.Context, leaving map[string]bool) (map[string]string, error) {
	pods := d.evicted(leaving)
	nodes := slices.DeleteFunc(d.cluster.DeepCopyNodes().Active(), func(node *state.StateNode) bool {
		return leaving[node.Name()]
	})
	// Preferences are scores to kube-scheduler; they are left out.
	scheduler, err := d.provisioner.NewScheduler(ctx, pods, nodes, nil, provisioner.IgnorePreferences)
	if err != nil {
		return nil, err
	}
	empty, err := scheduler.Solve(ctx, nil)
	if err != nil {
		return nil, err
	}
	goals := map[string]string{}
	free := map[string]corev1.ResourceList{}
	for _, node := range empty.ExistingNodes {
		free[node.Name()] = node.Available()
	}
	for _, pod := range pods {
		best, err := d.place(ctx, pod, empty.ExistingNodes, free)
		if err != nil {
			return nil, err
		}
		if best != "" {
			goals[name(pod)] = best
		}
	}
	return goals, nil
}

// evicted are the pods of these nodes that somebody makes again, in the order in which they come back.
func (d *disrupter) evicted(leaving map[string]bool) []*corev1.Pod {
	pods := []*corev1.Pod{}
	for _, stored := range all[corev1.Pod](d.store) {
		if leaving[stored.Spec.NodeName] && podutils.IsReschedulable(stored) {
			pods = append(pods, stored.DeepCopy())
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(name(a), name(b)) })
	rand.New(rand.NewSource(evictionSeed)).Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	return pods
}

// place puts a pod on a node and says which, if any takes it. free: what is left of each node.
func (d *disrupter) place(ctx context.Context, pod *corev1.Pod, nodes []*provisioner.ExistingNode, free map[string]corev1.ResourceList) (string, error) {
	strict := scheduling.NewStrictPodRequirements(pod)
	data := &provisioner.PodData{Requests: resources.RequestsForPods(pod), Requirements: strict, StrictRequirements: strict}
	volumes, err := scheduling.GetVolumes(ctx, d.store, pod)
	if err != nil {
		return "", err
	}
	byScore := slices.Clone(nodes)
	scores := map[string]float64{}
	for _, node := range nodes {
		scores[node.Name()] = leastAllocated(node.Allocatable(), free[node.Name()], data.Requests)
	}
	slices.SortFunc(byScore, func(a, b *provisioner.ExistingNode) int {
		return cmp.Or(cmp.Compare(scores[b.Name()], scores[a.Name()]), cmp.Compare(a.Name(), b.Name()))
	})
	for _, node := range byScore {
		if requirements, _, err := node.CanAdd(ctx, pod, data, volumes, nil); err == nil {
			node.Add(ctx, pod, data, requirements, volumes, nil)
			free[node.Name()] = resources.Subtract(free[node.Name()], data.Requests)
			return node.Name(), nil
		}
	}
	return "", nil
}

// leastAllocated is the score of kube-scheduler's plugin of that name: the mean part of processors and memory that would stay free.
func leastAllocated(allocatable, free, requests corev1.ResourceList) float64 {
	part := func(resource corev1.ResourceName) float64 {
		left, taken, all := free[resource], requests[resource], allocatable[resource]
		return (left.AsApproximateFloat64() - taken.AsApproximateFloat64()) / all.AsApproximateFloat64()
	}
	return (part(corev1.ResourceCPU) + part(corev1.ResourceMemory)) / 2
}
