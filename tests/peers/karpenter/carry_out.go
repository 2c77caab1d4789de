package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	provisioner "sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
)

// carryOut does what a command says, as if everything went well: replacements are nodes, pods are where its simulation put
// them, or where kube-scheduler does (-kube-scheduler), what it removes is gone. How many pods moved from one node to another
// is the second result.
func (d *disrupter) carryOut(ctx context.Context, command *disruption.Command) (action, int, error) {
	did := action{Method: command.ConsolidationType(), Decision: string(command.Decision())}
	if did.Method == "" {
		did.Method = string(command.Reason())
	}
	goals := map[string]string{}
	for _, replacement := range command.Replacements {
		node, err := d.launch(ctx, replacement.Name, replacement.NodeClaim)
		if err != nil {
			return did, 0, err
		}
		did.NodesCreated = append(did.NodesCreated, node)
		for _, pod := range node.Pods {
			goals[pod] = replacement.Name
		}
	}
	existingGoals(command.Results, goals)
	leaving := map[string]bool{}
	for _, candidate := range command.Candidates {
		leaving[candidate.Name()] = true
		did.NodesRemoved = append(did.NodesRemoved, candidate.Name())
	}
	slices.Sort(did.NodesRemoved)
	if d.kubeScheduler {
		var err error
		if goals, err = d.asScheduled(ctx, leaving); err != nil {
			return did, 0, err
		}
	}
	moved, err := d.rebind(ctx, goals, leaving)
	if err != nil {
		return did, moved, err
	}
	// Its own queue deletes the claims, now that the replacements are initialized.
	if _, err := d.queue.Reconcile(ctx, command.Candidates[0].NodeClaim); err != nil {
		return did, moved, err
	}
	if !command.Succeeded {
		return did, moved, errUnfinished
	}
	for _, candidate := range command.Candidates {
		d.cluster.DeleteNodeClaim(candidate.NodeClaim.Name)
		d.store.remove(candidate.Node)
		d.cluster.DeleteNode(candidate.Node.Name)
	}
	return did, moved, nil
}

func existingGoals(results provisioner.Results, goals map[string]string) {
	for _, node := range results.ExistingNodes {
		for _, pod := range node.Pods {
			goals[name(pod)] = node.Name()
		}
	}
}

// rebind moves pods to where they are wanted. One that leaves its node without a goal waits, if somebody would make it
// again and no DaemonSet owns it.
func (d *disrupter) rebind(ctx context.Context, goals map[string]string, leaving map[string]bool) (int, error) {
	moved := 0
	touched := map[string]bool{}
	for _, stored := range all[corev1.Pod](d.store) {
		goal, wanted := goals[name(stored)]
		before := stored.Spec.NodeName
		if !wanted && !leaving[before] || goal == before {
			continue
		}
		owner := metav1.GetControllerOf(stored)
		if !wanted && (owner == nil || owner.Kind == "DaemonSet" || owner.Kind == "Node") {
			d.store.remove(stored)
			d.cluster.DeletePod(types.NamespacedName{Namespace: stored.Namespace, Name: stored.Name})
			continue
		}
		if before != "" {
			moved++
		}
		touched[before], touched[goal] = true, true
		pod := stored.DeepCopy()
		pod.Spec.NodeName = goal
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}}
		if goal == "" {
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
			}}
			d.cluster.DeletePod(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
		d.store.put(pod)
		if err := client.IgnoreNotFound(d.cluster.UpdatePod(ctx, pod.DeepCopy())); err != nil {
			return moved, err
		}
	}
	for _, stored := range all[v1.NodeClaim](d.store) {
		if touched[stored.Status.NodeName] {
			claim := stored.DeepCopy()
			claim.Status.LastPodEventTime = metav1.NewTime(d.clock.Now())
			d.store.put(claim)
			d.cluster.UpdateNodeClaim(claim.DeepCopy())
		}
	}
	return moved, nil
}

// launch makes a node of a claim that the reference has created: of the cheapest offering that its launch may use.
func (d *disrupter) launch(ctx context.Context, claimName string, planned *provisioner.NodeClaim) (newNode, error) {
	node, err := describeClaim(planned)
	if err != nil {
		return node, err
	}
	claim := &v1.NodeClaim{}
	if err := d.store.Get(ctx, types.NamespacedName{Name: claimName}, claim); err != nil {
		return node, err
	}
	sold, err := d.provider.find(node.InstanceType)
	if err != nil {
		return node, err
	}
	d.created++
	now := metav1.NewTime(d.clock.Now())
	labels := d.labels(claim, node, sold)
	claim.Labels = labels
	claim.UID = types.UID("claim-" + claimName)
	claim.CreationTimestamp = now
	claim.Status.ProviderID = fmt.Sprintf("aws:///%s/i-%08d", node.Zone, d.created)
	claim.Status.NodeName = claimName
	claim.Status.Capacity, claim.Status.Allocatable = sold.Capacity, sold.Allocatable()
	claim.Status.LastPodEventTime = now
	for _, stage := range []string{v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized} {
		claim.StatusConditions().SetTrue(stage)
	}
	d.store.put(claim)
	machine := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: claimName, UID: types.UID("node-" + claimName), CreationTimestamp: now, Labels: maps.Clone(labels),
		},
		Spec: corev1.NodeSpec{ProviderID: claim.Status.ProviderID, Taints: claim.Spec.Taints},
		Status: corev1.NodeStatus{
			Capacity: sold.Capacity, Allocatable: sold.Allocatable(),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	d.store.put(machine)
	d.cluster.UpdateNodeClaim(claim.DeepCopy())
	return node, d.cluster.UpdateNode(ctx, machine.DeepCopy())
}

func (d *disrupter) labels(claim *v1.NodeClaim, node newNode, sold *cloudprovider.InstanceType) map[string]string {
	labels := maps.Clone(claim.Labels)
	for key, requirement := range sold.Requirements {
		if values := requirement.Values(); len(values) == 1 {
			labels[key] = values[0]
		}
	}
	for _, offering := range sold.Offerings {
		if offering.Zone() == node.Zone && offering.CapacityType() == node.CapacityType {
			for key, requirement := range offering.Requirements {
				if values := requirement.Values(); len(values) == 1 {
					labels[key] = values[0]
				}
			}
		}
	}
	labels[corev1.LabelInstanceTypeStable] = sold.Name
	labels[corev1.LabelHostname] = claim.Name
	labels[v1.NodeRegisteredLabelKey] = "true"
	labels[v1.NodeInitializedLabelKey] = "true"
	return labels
}

// provisionPending is a round of its provisioner for pods that wait. How many then still do.
func (d *disrupter) provisionPending(ctx context.Context) (int, error) {
	if d.pending(ctx) == 0 {
		return 0, nil
	}
	results, err := d.provisioner.Schedule(ctx)
	if err != nil {
		return 0, err
	}
	names, err := d.provisioner.CreateNodeClaims(ctx, results.NewNodeClaims)
	if err != nil {
		return 0, err
	}
	goals := map[string]string{}
	for i, planned := range results.NewNodeClaims {
		node, err := d.launch(ctx, names[i], planned)
		if err != nil {
			return 0, err
		}
		for _, pod := range node.Pods {
			goals[pod] = names[i]
		}
	}
	existingGoals(results, goals)
	_, err = d.rebind(ctx, goals, nil)
	return d.pending(ctx), err
}

func (d *disrupter) pending(ctx context.Context) int {
	pods, err := d.provisioner.GetPendingPods(ctx)
	if err != nil {
		return 0
	}
	return len(pods)
}
