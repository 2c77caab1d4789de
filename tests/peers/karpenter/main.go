// Runs the scheduler of Karpenter, the reference, or its disruption controller on the files that Cutlist plans from:
// definitions, a catalog, a snapshot.
// What it prints is data for tests/bench. See README.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/karpenter/pkg/events"
)

type settings struct {
	definitions      string
	snapshot         string
	catalog          string
	preferencePolicy string
	runs             int
	workers          int
	limit            time.Duration
	summary          bool

	disrupt         bool
	steps           bool
	spotToSpot      bool
	kubeScheduler   bool
	seconds         time.Duration
	singleNodeLimit time.Duration
	multiNodeLimit  time.Duration
	now             time.Time
}

// output is what is printed.
type output struct {
	// PeakMemoryBytes is the most memory that this process has held, the files and all passes included.
	PeakMemoryBytes uint64 `json:"peakMemoryBytes"`
	Runs            []pass `json:"runs"`
}

func main() {
	if err := run(context.Background(), parse()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func parse() settings {
	var s settings
	flag.StringVar(&s.definitions, "definitions", "", "folder with NodePools, YAML or JSON")
	flag.StringVar(&s.snapshot, "snapshot", "", "the cluster, as kubectl get -o json prints it")
	flag.StringVar(&s.catalog, "catalog", "", "what is for sale (schemas/catalog.json)")
	flag.StringVar(&s.preferencePolicy, "preference-policy", "Respect", "Respect or Ignore")
	flag.IntVar(&s.runs, "runs", 1, "passes from the same state, as far as they fit into twice the limit")
	flag.IntVar(&s.workers, "workers", 5, "candidates that are looked at in parallel; its own benchmark has 5")
	flag.DurationVar(&s.limit, "limit", time.Minute, "for one pass; a minute is its own")
	flag.BoolVar(&s.summary, "summary", false, "print numbers only: no placements, no nodes")
	flag.BoolVar(&s.disrupt, "disrupt", false, "instead: one loop of its disruption controller")
	flag.BoolVar(&s.steps, "steps", false, "instead: loops of its disruption controller, carried out in memory, until nothing moves")
	flag.BoolVar(&s.spotToSpot, "spot-to-spot", false, "its feature gate SpotToSpotConsolidation")
	flag.BoolVar(&s.kubeScheduler, "kube-scheduler", false, "pods that move go to the least allocated nodes that take them, not where it wants them")
	flag.DurationVar(&s.seconds, "seconds", time.Hour, "for all loops together")
	flag.DurationVar(&s.singleNodeLimit, "single-node-limit", 3*time.Minute, "for single-node consolidation; 3 minutes are its own")
	flag.DurationVar(&s.multiNodeLimit, "multi-node-limit", time.Minute, "for multi-node consolidation; a minute is its own, and the most")
	s.now = time.Now()
	flag.Func("now", "what the clock shows at the beginning, RFC 3339 (default: the time)", func(text string) (err error) {
		s.now, err = time.Parse(time.RFC3339, text)
		return err
	})
	flag.Parse()
	return s
}

func run(ctx context.Context, s settings) error {
	log.SetLogger(logr.Discard())
	if s.definitions == "" || s.snapshot == "" || s.catalog == "" {
		return errors.New("-definitions, -snapshot and -catalog are needed")
	}
	instanceTypes, err := readCatalog(s.catalog)
	if err != nil {
		return err
	}
	objects := newStore()
	if err := readSnapshot(s.snapshot, objects); err != nil {
		return err
	}
	if err := readDefinitions(s.definitions, objects); err != nil {
		return err
	}
	objects.index()
	sells := &provider{instanceTypes: instanceTypes}
	if s.disrupt || s.steps {
		clock, saw := newClock(s.now), &witness{}
		world, err := newWorld(ctx, s, objects, sells, saw, clock)
		if err != nil {
			return err
		}
		return newDisrupter(world, s, sells, saw, clock).run(ctx, s, os.Stdout)
	}
	return solve(ctx, s, objects, sells)
}

func solve(ctx context.Context, s settings, objects *store, sells *provider) error {
	recorder := events.NewRecorder(&record.FakeRecorder{})
	world, err := newWorld(ctx, s, objects, sells, recorder, clock.RealClock{})
	if err != nil {
		return err
	}
	out := output{}
	start := time.Now()
	for len(out.Runs) < s.runs && (len(out.Runs) == 0 || time.Since(start) < 2*s.limit) {
		one, err := world.pass(ctx, s)
		if err != nil {
			return err
		}
		out.Runs = append(out.Runs, one)
	}
	out.PeakMemoryBytes = peakMemoryBytes()
	return json.NewEncoder(os.Stdout).Encode(out)
}

// peakMemoryBytes is zero where the system does not tell; it is Linux that does.
func peakMemoryBytes() uint64 {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[0] == "VmHWM:" {
			kibibytes, err := strconv.ParseUint(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return kibibytes * 1024
		}
	}
	return 0
}
