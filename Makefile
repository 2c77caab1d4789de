# One door to every task. What each target needs beyond Rust, a C compiler, make and git is said here; nothing else is needed.

CARGO ?= cargo
# The features aws and tls add minutes to a first build and nothing to planning; `make release` and the public CI have them.
FEATURES ?= --no-default-features
LOCKED := --locked

.DEFAULT_GOAL := help
.PHONY: help build demo test ci-formats e2e e2e-aws e2e-forge e2e-gitops fuzz karpenter-versions fmt lint doc update-golden bench bench-quick bench-parity bench-consolidation bench-consolidation-ours bench-fidelity bench-beside bench-lint bench-ec2 bench-ec2-sdk bench-looks bench-programs release clean format-check tests rustfmt clippy

help: ## list these targets
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z][a-z0-9-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-24s %s\n", $$1, $$2 }'

build: ## build the program, without the features aws and tls
	$(CARGO) build $(LOCKED) $(FEATURES)

demo: ## play the quickstart: real Git, an in-memory cluster, virtual time
	$(CARGO) run $(LOCKED) $(FEATURES) -- run --embedded examples/quickstart

# One after the other, also under `make -j`: Cargo would only wait for its own lock, and the sections would mix.
test: ## everything that must pass: format, lints, documentation, tests, generated files
	@$(MAKE) --no-print-directory format-check
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory doc
	@$(MAKE) --no-print-directory tests
	@echo "== all passed"

# What lint writes for CI systems, read by the programs that it is for: needs Python, Node and Go, and installs those programs below target/.
ci-formats: build ## the forms of lint, the action and the hooks, read by the programs of others (a minute; needs Python, Node and Go)
	@tests/ci-formats/check

# Needs Go 1.26 and a Go module proxy, unless KUBEBUILDER_ASSETS has the programs: a control plane is built from source once
# (ten minutes on two cores) and kept in ~/.cache/cutlist. CASES="a b" runs those whose name has one of the words; CUTLIST=FILE
# tries another build of the program. The large one runs when it is named: CUTLIST=target/release/cutlist CASES=five_thousand_pods.
# What reads lint's forms takes the program that the tests were built with: `make build` would build another, with other optimisation.
e2e: ## the program against a real control plane on loopback (some minutes after the first time; needs Go)
	@echo "== a real control plane"
	@tests/control-plane/build target/e2e/programs
	@echo "== end to end"
	@$(CARGO) test $(LOCKED) $(FEATURES) --test e2e -- --programs target/e2e/programs $(CASES)
	@tests/ci-formats/check
	@$(MAKE) --no-print-directory e2e-forge
	@$(MAKE) --no-print-directory e2e-aws

# The SDK takes 8 GB and minutes.
e2e-aws: ## the AWS SDK against moto's server, which is installed from PyPI once (minutes for the SDK the first time; 8 GB)
	@echo "== EC2's API, played by moto"
	@tests/aws/install target/e2e/moto
	@$(CARGO) test $(LOCKED) --no-default-features --features aws --test aws -- --moto target/e2e/moto \
	  $(if $(wildcard target/e2e/programs/kube-apiserver),--programs target/e2e/programs) $(CASES)

# Gitea is built from its Go module once, which takes ten minutes on two cores; GITEA=FILE takes one that is there.
e2e-forge: ## posting to a real Gitea on loopback (a minute after the first time; needs Go)
	@echo "== a real forge"
	@tests/forge/build target/e2e/programs
	@$(CARGO) test $(LOCKED) $(FEATURES) --test forge -- target/e2e/programs

# Apart from `make e2e`, since Flux's controllers take a quarter of an hour to build, once. NOTIFICATION_CONTROLLER=FOLDER, a checkout of
# github.com/fluxcd/notification-controller, builds that one, too, and has it tell an event of ours on: not every module proxy has it.
e2e-gitops: ## Flux's source-controller and kustomize-controller on a real control plane (two minutes after the first time; needs Go)
	@echo "== Flux on a real control plane"
	@tests/control-plane/build target/e2e/programs
	@tests/gitops/build target/e2e/programs
	@$(CARGO) test $(LOCKED) $(FEATURES) --test e2e -- --programs target/e2e/programs \
	  $(or $(CASES),flux_ $(if $(NOTIFICATION_CONTROLLER),notification_controller))

# Needs `cargo install cargo-fuzz` and a C++ compiler; works with a stable Rust, since no sanitizer is asked for: there is no unsafe code.
# What is new and interesting goes to target/fuzz; what breaks a target belongs into tests/fuzz/corpus, by a name that says what it is.
TARGET ?= definitions
SECONDS ?= 600
fuzz: ## look SECONDS long for input that breaks TARGET, one of tests/fuzz/targets.rs (ten minutes after building)
	@mkdir -p target/fuzz/corpus/$(TARGET) target/fuzz/found
	@cd tests/fuzz && $(CARGO) fuzz run --fuzz-dir . --sanitizer none --target-dir ../../target/fuzz $(TARGET) \
	  ../../target/fuzz/corpus/$(TARGET) corpus/$(TARGET) \
	  -- -max_total_time=$(SECONDS) -timeout=1 -rss_limit_mb=256 -artifact_prefix=../../target/fuzz/found/

# CLONE is a clone of https://github.com/aws/karpenter-provider-aws with its tags; LAST=1.15 reads a version that the table does not have yet,
# and what lint says then differs where a unit test of definitions/versions says so. Needs the programs of `make e2e`.
CLONE ?= target/karpenter-provider-aws
karpenter-versions: ## which Karpenter has which field, from its definitions, and what a real API server says of them (minutes; needs CLONE)
	@$(CARGO) test $(LOCKED) $(FEATURES) --test karpenter-versions -- $(CLONE) $(LAST)
	@tests/control-plane/build target/e2e/programs
	@tests/karpenter-versions/verdicts $(CLONE) target/e2e/programs > target/verdicts.txt
	@mv target/verdicts.txt tests/lint/versions/verdicts.txt
	@git diff --stat -- src/definitions/versions tests/lint/versions

fmt: rustfmt ## format the code
	$(CARGO) fmt

# Clippy and rustdoc share one check of the dependencies; the tests need them compiled, which no check can stand in for.
# What `cargo test` does not run, --all-targets does not name.
lint: clippy ## Clippy, warnings denied
	@echo "== lints"
	@$(CARGO) clippy $(LOCKED) $(FEATURES) --all-targets -- -D warnings
	@$(CARGO) clippy $(LOCKED) $(FEATURES) --test e2e --test forge -- -D warnings

doc: ## build the documentation of the code, warnings denied
	@echo "== documentation"
	@RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(LOCKED) $(FEATURES) --no-deps --document-private-items

update-golden: ## rewrite golden and generated files; look at the difference before you commit it
	UPDATE=1 INSTA_UPDATE=always TRYCMD=overwrite $(CARGO) test $(LOCKED) $(FEATURES)
	@git status --short -- README.md examples schemas tests src

# Needs Go 1.26 for the reference's scheduler, a library of some 200 modules, and an otherwise idle machine for its figures.
BENCH = $(CARGO) bench $(LOCKED) $(FEATURES) --profile dev --bench scheduling -- \
  --cutlist target/release/cutlist --peer target/bench/karpenter

bench: bench-programs ## our planner against the reference's scheduler, into tests/bench/README.md (an hour or two; needs Go)
	@$(BENCH) --readme tests/bench/README.md

bench-quick: bench-programs ## the small sizes of it (some minutes after building)
	@$(BENCH) --quick

bench-parity: bench-programs ## the placements of `packing: karpenter` against Karpenter's own, on small random inputs
	@$(BENCH) --parity 200

bench-consolidation: bench-programs ## consolidation to its end, ours and Karpenter's own from the same starts, into tests/bench/README.md (an hour; needs Go)
	@$(CARGO) bench $(LOCKED) $(FEATURES) --profile dev --bench consolidation -- \
	  --cutlist target/release/cutlist --peer target/bench/karpenter --readme tests/bench/README.md

bench-consolidation-ours: ## ours alone, in one process and up to 150,000 pods: each plan's seconds (minutes, after a release build)
	@$(CARGO) bench $(LOCKED) $(FEATURES) --bench consolidation

# FIDELITY="PODS:SEED ..." draws other mixes.
bench-fidelity: ## pods on the node that the first plan named, on a real control plane, into tests/bench/README.md (some minutes after building; needs Go)
	@$(CARGO) build $(LOCKED) $(FEATURES) --release
	@tests/control-plane/build target/e2e/programs
	@CUTLIST=target/release/cutlist README=tests/bench/README.md $(CARGO) test $(LOCKED) $(FEATURES) --test e2e -- \
	  --programs target/e2e/programs pods_as_the_first_plan_named

# BESIDE="--steps N --seed S --planes P" plays other steps; what was missed goes to target/bench/beside, with all that a plan of it takes.
bench-beside: ## what Karpenter itself does next, foreseen beside it on a real control plane, into tests/bench/README.md (three hours; needs Go)
	@$(CARGO) build $(LOCKED) $(FEATURES) --release
	@tests/control-plane/build target/e2e/programs
	@tests/peers/karpenter-kwok/build target/e2e/programs
	@$(CARGO) bench $(LOCKED) $(FEATURES) --profile dev --bench beside -- \
	  --cutlist target/release/cutlist --programs target/e2e/programs --readme tests/bench/README.md $(BESIDE)

# Played in one process, on an account that loses answers, refuses and throttles: no SDK, no network.
bench-ec2: ## what launches and looks ask of EC2, under faults, into tests/bench/README.md (two minutes after building)
	@$(CARGO) bench $(LOCKED) $(FEATURES) --profile dev --bench ec2 -- --readme tests/bench/README.md

# The whole controller on a cluster in memory: 5,000 nodes with 150,000 pods, which takes minutes to come to rest.
bench-looks: ## looks of the controller at a large cluster at rest, and what a pod waits for that comes, into tests/bench/README.md
	@$(CARGO) bench $(LOCKED) $(FEATURES) --bench looks -- --readme tests/bench/README.md

bench-ec2-sdk: ## the same with the SDK over HTTP, against moto behind the proxy, into tests/bench/README.md (a minute after building; 8 GB)
	@tests/aws/install target/e2e/moto
	@$(CARGO) test $(LOCKED) --no-default-features --features aws --test aws -- --moto target/e2e/moto \
	  --readme tests/bench/README.md

# kubeconform comes from the Go module proxy; kube-linter is measured where PEERS has it, since no proxy serves it everywhere.
PEERS ?= target/bench/peers
bench-lint: ## lint of many manifests beside kubeconform and kube-linter, into tests/bench/README.md (a minute after building; needs Go)
	@$(CARGO) build $(LOCKED) $(FEATURES) --release
	@mkdir -p $(PEERS)
	@[ -x $(PEERS)/kubeconform ] || GOFLAGS=-mod=mod GOBIN=$(abspath $(PEERS)) go install github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0
	@$(CARGO) bench $(LOCKED) $(FEATURES) --profile dev --bench lint -- --cutlist target/release/cutlist --peers $(PEERS) --readme tests/bench/README.md

# The harness only starts programs and reads their output; what is measured is built for use.
bench-programs:
	@echo "== building what is measured"
	@mkdir -p target/bench
	@$(CARGO) build $(LOCKED) $(FEATURES) --release
	@cd tests/peers/karpenter && go build -trimpath -o ../../../target/bench/karpenter .

release: ## build the program for use, with all features (minutes; the feature tls needs Perl)
	$(CARGO) build $(LOCKED) --release --all-features

clean: ## remove what was built
	$(CARGO) clean

format-check: rustfmt
	@echo "== format"
	@$(CARGO) fmt --check

# Compiled in sight, since that may take minutes; run in silence, since only failures are worth reading. The unit tests of the inner rings
# take seconds without the optimisation that the profile `test` gives the planner, and minutes to be built with it.
tests:
	@echo "== unit tests of the inner rings"
	@$(CARGO) test $(LOCKED) --profile dev -p cutlist-api -p cutlist-core --no-run
	@$(CARGO) test $(LOCKED) --profile dev -p cutlist-api -p cutlist-core --quiet --no-fail-fast
	@echo "== tests, and generated files"
	@$(CARGO) test $(LOCKED) $(FEATURES) -p cutlist --no-run
	@$(CARGO) test $(LOCKED) $(FEATURES) -p cutlist --quiet --no-fail-fast

# Distributions package these apart, and rustup's minimal profile leaves them out.
rustfmt clippy:
	@$(CARGO) $(if $(filter rustfmt,$@),fmt,clippy) --version >/dev/null 2>&1 || { \
	  echo "error: $@ is missing, and make test does not skip it"; \
	  echo "hint: rustup component add $@     (or the package $@, or rust-$@, of your system)"; \
	  exit 1; }
