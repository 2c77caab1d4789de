package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/awslabs/operatorpkg/option"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	claimdisruption "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/disruption"
	"sigs.k8s.io/karpenter/pkg/events"
)

// betweenCommands passes before the reference looks again: pods are no longer news, and its memory of having found nothing
// has lapsed.
const betweenCommands = 10 * time.Minute

// barrenLoopsMax is how many loops in a row may end without a command, because of a time-out or a command that its own
// validation threw away, before no other is tried.
const barrenLoopsMax = 5

// loop is one reconciliation of its disruption controller: all methods in their order, until one of them acts.
type loop struct {
	// Seconds of computing, in which nothing is waited for; ProcessorSeconds are those that it had a processor.
	Seconds          float64 `json:"seconds"`
	ProcessorSeconds float64 `json:"processorSeconds"`
	// TimedOut: one of its methods ran into its own limit.
	TimedOut bool `json:"timedOut"`
	// Rejected: its own validation threw a command away that it had just found.
	Rejected bool     `json:"rejected"`
	Commands []action `json:"commands,omitempty"`

	PricePerHourBefore float64 `json:"pricePerHourBefore"`
	PricePerHourAfter  float64 `json:"pricePerHourAfter"`
	PodsMoved          int     `json:"podsMoved"`
	PodsPending        int     `json:"podsPending"`
}

// action is one of its commands.
type action struct {
	Method       string    `json:"method"`
	Decision     string    `json:"decision"`
	NodesRemoved []string  `json:"nodesRemoved"`
	NodesCreated []newNode `json:"nodesCreated,omitempty"`
}

// result is the end of it.
type result struct {
	PricePerHourStart float64 `json:"pricePerHourStart"`
	PricePerHourEnd   float64 `json:"pricePerHourEnd"`
	Pods              int     `json:"pods"`
	NodesStart        int     `json:"nodesStart"`
	NodesEnd          int     `json:"nodesEnd"`
	PodsMoved         int     `json:"podsMoved"`
	PodsPending       int     `json:"podsPending"`
	Commands          int     `json:"commands"`
	NodesCreated      int     `json:"nodesCreated"`
	NodesRemoved      int     `json:"nodesRemoved"`
	// Seconds of computing, of all loops together; SlowestSeconds of the longest.
	Seconds          float64 `json:"seconds"`
	ProcessorSeconds float64 `json:"processorSeconds"`
	SlowestSeconds   float64 `json:"slowestSeconds"`
	// TimeOuts and Rejections: loops that had one.
	TimeOuts   int `json:"timeOuts"`
	Rejections int `json:"rejections"`
	// FixedPoint: nothing moved any more. Otherwise OutOfTime (-seconds), or too many loops in a row had no result.
	FixedPoint      bool   `json:"fixedPoint"`
	OutOfTime       bool   `json:"outOfTime"`
	PeakMemoryBytes uint64 `json:"peakMemoryBytes"`
}

// disrupter is the reference's disruption controller with what it stands on.
type disrupter struct {
	*world
	clock      *skippingClock
	queue      *disruption.Queue
	controller *disruption.Controller
	conditions *claimdisruption.Controller
	saw        *witness
	provider   *provider
	created    int
	// kubeScheduler: pods go where kube-scheduler puts them, and not where the reference wants them.
	kubeScheduler bool
	// wait is how much later each loop looks.
	wait time.Duration
}

func newDisrupter(w *world, s settings, sells *provider, saw *witness, clock *skippingClock) *disrupter {
	disruption.SingleNodeConsolidationTimeoutDuration = s.singleNodeLimit
	queue := disruption.NewQueue(w.store, saw, w.cluster, clock, w.provisioner)
	methods := disruption.NewMethods(clock, w.cluster, w.store, w.provisioner, sells, saw, queue)
	how := []option.Function[disruption.ControllerOptions]{}
	if s.multiNodeLimit < disruption.MultiNodeConsolidationTimeoutDuration {
		for i, method := range methods {
			if _, is := method.(*disruption.MultiNodeConsolidation); is {
				methods[i] = limitedMultiNode(w, s.multiNodeLimit, clock, sells, saw, queue)
			}
		}
		how = append(how, disruption.WithMethods(methods...))
	}
	wait := betweenCommands
	for _, pool := range all[v1.NodePool](w.store) {
		if after := pool.Spec.Disruption.ConsolidateAfter.Duration; after != nil {
			wait = max(wait, *after+time.Minute)
		}
	}
	return &disrupter{
		world: w, clock: clock, queue: queue, saw: saw, provider: sells, wait: wait, kubeScheduler: s.kubeScheduler,
		controller: disruption.NewController(clock, w.store, w.provisioner, sells, saw, w.cluster, queue, nil, how...),
		conditions: claimdisruption.NewController(clock, w.store, sells),
	}
}

// multiNode is the reference's own with less time; what it found by then is validated without haste, as its own limit has it.
type multiNode struct {
	*disruption.MultiNodeConsolidation
	limit time.Duration
}

type unhurried struct{ disruption.Validator }

func limitedMultiNode(w *world, limit time.Duration, clock *skippingClock, sells *provider, saw *witness, queue *disruption.Queue) disruption.Method {
	base := disruption.MakeConsolidation(clock, w.cluster, w.store, w.provisioner, sells, saw, queue)
	validator := unhurried{disruption.NewMultiConsolidationValidator(base)}
	return &multiNode{disruption.NewMultiNodeConsolidation(base, disruption.WithValidator(validator)), limit}
}

func (m *multiNode) ComputeCommands(ctx context.Context, budgets map[string]int, candidates ...*disruption.Candidate) ([]disruption.Command, error) {
	ctx, cancel := context.WithTimeout(ctx, m.limit)
	defer cancel()
	return m.MultiNodeConsolidation.ComputeCommands(ctx, budgets, candidates...)
}

func (u unhurried) Validate(ctx context.Context, command disruption.Command, after time.Duration) (disruption.Command, error) {
	return u.Validator.Validate(context.WithoutCancel(ctx), command, after)
}

// witness hears what the reference says: in events and in its log.
type witness struct {
	mu       sync.Mutex
	rejected bool
	timedOut bool
}

func (w *witness) Publish(published ...events.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, event := range published {
		if event.Reason == "ConsolidationRejected" {
			w.rejected = true
		}
	}
}

func (w *witness) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		if strings.Contains(line, "timeout") {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.timedOut = true
		}
	}, funcr.Options{Verbosity: 1})
}

// run lets the reference disrupt: once, or as often as it wants to.
func (d *disrupter) run(ctx context.Context, s settings, out io.Writer) error {
	encoder := json.NewEncoder(out)
	ctx, cancel := context.WithTimeout(log.IntoContext(d.context(ctx), d.saw.logger()), s.seconds)
	defer cancel()
	if _, err := d.provisionPending(ctx); err != nil {
		return err
	}
	done := result{
		PricePerHourStart: d.price(),
		Pods:              len(all[corev1.Pod](d.store)),
		NodesStart:        len(all[v1.NodeClaim](d.store)),
	}
	barren := 0
	for {
		if err := d.refresh(ctx); err != nil {
			return err
		}
		one, err := d.loop(ctx, s)
		if err != nil {
			return err
		}
		done.add(one)
		if err := encoder.Encode(map[string]loop{"loop": one}); err != nil {
			return err
		}
		if ctx.Err() != nil {
			done.OutOfTime = true
			break
		}
		if len(one.Commands) > 0 {
			barren = 0
		} else if !one.TimedOut && !one.Rejected {
			done.FixedPoint = true
			break
		} else if barren++; barren == barrenLoopsMax {
			break
		}
		if !s.steps {
			break
		}
	}
	done.PricePerHourEnd, done.NodesEnd = d.price(), len(all[v1.NodeClaim](d.store))
	done.PodsPending = d.pending(ctx)
	done.PeakMemoryBytes = peakMemoryBytes()
	return encoder.Encode(map[string]result{"summary": done})
}

func (r *result) add(one loop) {
	r.Seconds += one.Seconds
	r.SlowestSeconds = max(r.SlowestSeconds, one.Seconds)
	r.PodsMoved += one.PodsMoved
	r.ProcessorSeconds += one.ProcessorSeconds
	if one.TimedOut {
		r.TimeOuts++
	}
	if one.Rejected {
		r.Rejections++
	}
	r.Commands += len(one.Commands)
	for _, each := range one.Commands {
		r.NodesRemoved += len(each.NodesRemoved)
		r.NodesCreated += len(each.NodesCreated)
	}
}

// refresh lets time pass, and its own controller say which claims are drifted or may be consolidated.
func (d *disrupter) refresh(ctx context.Context) error {
	d.clock.Sleep(d.wait)
	for _, claim := range all[v1.NodeClaim](d.store) {
		if _, err := d.conditions.Reconcile(ctx, claim.DeepCopy()); err != nil {
			return fmt.Errorf("conditions of %s: %w", claim.Name, err)
		}
	}
	for _, claim := range all[v1.NodeClaim](d.store) {
		d.cluster.UpdateNodeClaim(claim.DeepCopy())
	}
	return nil
}

func (d *disrupter) loop(ctx context.Context, s settings) (loop, error) {
	d.saw.rejected, d.saw.timedOut = false, false
	d.store.index()
	runtime.GC()
	one := loop{PricePerHourBefore: d.price()}
	start, processor := time.Now(), processorSeconds()
	_, err := d.controller.Reconcile(ctx)
	one.Seconds, one.ProcessorSeconds = time.Since(start).Seconds(), processorSeconds()-processor
	one.TimedOut, one.Rejected = d.saw.timedOut, d.saw.rejected
	one.PricePerHourAfter = one.PricePerHourBefore
	if ctx.Err() != nil {
		// What it decides while the time is over is not what it would have decided.
		return one, nil
	}
	if err != nil {
		return one, err
	}
	commands := d.queue.GetCommands()
	slices.SortFunc(commands, func(a, b *disruption.Command) int {
		return cmp.Compare(a.Candidates[0].Name(), b.Candidates[0].Name())
	})
	for _, command := range commands {
		did, moved, err := d.carryOut(ctx, command)
		if err != nil {
			return one, fmt.Errorf("carrying out %s: %w", command, err)
		}
		one.PodsMoved += moved
		one.Commands = append(one.Commands, did)
	}
	if one.PodsPending, err = d.provisionPending(ctx); err != nil {
		return one, err
	}
	one.PricePerHourAfter = d.price()
	if err := d.check(); err != nil {
		return one, err
	}
	if s.summary {
		for i := range one.Commands {
			for j := range one.Commands[i].NodesCreated {
				node := &one.Commands[i].NodesCreated[j]
				node.InstanceTypes, node.Pods = nil, nil
			}
		}
	}
	return one, nil
}

// price is that of all nodes that a claim stands behind, per hour.
func (d *disrupter) price() float64 {
	sum := 0.0
	for _, claim := range all[v1.NodeClaim](d.store) {
		sum += d.provider.price(claim.Labels)
	}
	return sum
}

// check says where a node holds more than it can, which would be a mistake of this program.
func (d *disrupter) check() error {
	for node := range d.cluster.Nodes() {
		for resource, left := range node.Available() {
			if left.Sign() < 0 {
				return fmt.Errorf("%s has %s of %s left", node.Name(), left.String(), resource)
			}
		}
	}
	return nil
}

var errUnfinished = errors.New("its queue did not let the command end")

// processorSeconds of this process so far.
func processorSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}
