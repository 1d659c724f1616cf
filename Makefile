# skep. `make run` shows a task travel through the default swarm; `make test` builds what
# tests need besides, and runs every test. Both need Go 1.26, make and git, nothing else.

GO      ?= go
MODULES  = . sdk/go sdk/goproc plugins examples host/bench
QUESTION ?= What is (17+4)*3, and how many words and vowels are in "the bees are busy in the skep"?

# The race detector needs a C compiler; a machine without one tests without it.
CC_FOUND := $(shell command -v $${CC:-cc} 2>/dev/null)
ifeq ($(CC_FOUND),)
RACE =
else
# SQLite and the compiler of modules are left out of it, see host/RATIONALE.md.
NORACE = modernc.org/sqlite/lib modernc.org/memory \
	github.com/tetratelabs/wazero/internal/leb128 \
	github.com/tetratelabs/wazero/internal/wasm/binary \
	github.com/tetratelabs/wazero/internal/engine/wazevo/ssa \
	github.com/tetratelabs/wazero/internal/engine/wazevo/frontend \
	github.com/tetratelabs/wazero/internal/engine/wazevo/backend/...
RACE = -race $(foreach p,$(NORACE),-gcflags=$p=-race=false)
# All tests but its own leave the reader of modules out too: each host that starts reads
# all its modules again.
NOREADER = -gcflags=$(READER)=-race=false
endif

TEST = CGO_ENABLED=$(if $(RACE),1,0) $(GO) test $(RACE)
READER = skep/host/internal/turn/wasm/binary
# The two largest packages wait for processes most of their time: three at once keep
# two cores busy.
TESTFLAGS ?= -shuffle=on -count=1 -timeout 30m -p 3

# What is compiled for one clone serves another: no package names its directory.
export GOFLAGS := -buildvcs=false -trimpath

.PHONY: acp-sockets iacp-connections build release release-check bundle run serve guests python mcp-clients a2a-clients uamp-clients acp-clients openapi-tool openapi-check examples test race check lint systems windows fmt tidy generate bench fuzz simulate pulse soak soak-gateways soak-cluster chaos soak-cluster-control migrate-large test-postgres failover guests-check conform-reference conformance clean

# Tools are built with CGO_ENABLED=0, all of them: what they import is then compiled once.

# One static binary with the bundled modules in it.
build: bundle
	CGO_ENABLED=0 $(GO) build -o bin/skep ./host/cmd/skep

# bin/release/skep: stripped, with the commit and its date for "skep version".
release: bundle
	CGO_ENABLED=0 $(GO) build -buildvcs=true -ldflags '-s -w' -o bin/release/skep ./host/cmd/skep

# The release is stripped, says what it was built from, and runs without bin/plugins.
release-check: release
	bin/release/skep version | grep "^commit $$(git rev-parse HEAD)"
	bin/release/skep version | grep '^date 20'
	! $(GO) tool nm bin/release/skep 2>/dev/null | grep -q .
	d=$$(mktemp -d) && cp swarm.toml $$d && bin/release/skep validate -c $$d/swarm.toml && rm -r $$d

# The bundled modules, compressed, where the program embeds them.
bundle:
	CGO_ENABLED=0 $(GO) run ./host/internal/guests/build -modules plugins
	CGO_ENABLED=0 $(GO) run ./host/internal/bundle/pack bin/plugins host/internal/bundle/modules

# The modules and programs of the examples, and what they run with.
examples: build
	CGO_ENABLED=0 $(GO) run ./host/internal/guests/build -modules examples

# Builds every guest once and fills one compile cache that all tests open.
guests: build
	CGO_ENABLED=0 $(GO) run ./host/internal/guests/build

# The Python that agents in Python are built and tested with, with what they import,
# and the examples' programs. base leads to where that Python has its own library.
PYTHON ?= python3

python: bin/python/.made
	bin/python/bin/python sdk/python/build.py examples/subprocess/python/agent.py bin/python/clerk
	bin/python/bin/python sdk/python/build.py examples/workflow/python/agent.py bin/python/security

bin/python/.made: sdk/python/requirements.txt
	$(PYTHON) -m venv --clear bin/python
	bin/python/bin/python -m pip install --quiet --disable-pip-version-check -r sdk/python/requirements.txt
	ln -sfn "$$(bin/python/bin/python -c 'import sys; print(sys.base_prefix)')" bin/python/base
	touch bin/python/.made

# The clients and the conformance suite that the MCP gateway is tested with.
MCP_CLIENTS = host/internal/gateway/mcp/testdata/clients

mcp-clients: bin/mcpclients/.made

bin/mcpclients/.made: $(MCP_CLIENTS)/package.json $(MCP_CLIENTS)/package-lock.json $(MCP_CLIENTS)/requirements.txt
	mkdir -p bin/mcpclients
	cp $(MCP_CLIENTS)/package.json $(MCP_CLIENTS)/package-lock.json bin/mcpclients
	cd bin/mcpclients && npm ci --silent --ignore-scripts
	$(PYTHON) -m venv --clear bin/mcpclients/python
	bin/mcpclients/python/bin/python -m pip install --quiet --disable-pip-version-check -r $(MCP_CLIENTS)/requirements.txt
	touch bin/mcpclients/.made

# The libraries of others that the A2A gateway is tested with.
A2A_CLIENTS = host/internal/gateway/a2a/testdata/clients

a2a-clients: bin/a2aclients/.made

bin/a2aclients/.made: go.mod $(A2A_CLIENTS)/package.json $(A2A_CLIENTS)/package-lock.json $(A2A_CLIENTS)/requirements.txt
	mkdir -p bin/a2aclients
	cp $(A2A_CLIENTS)/package.json $(A2A_CLIENTS)/package-lock.json bin/a2aclients
	cd bin/a2aclients && npm ci --silent --ignore-scripts
	$(PYTHON) -m venv --clear bin/a2aclients/python
	bin/a2aclients/python/bin/python -m pip install --quiet --disable-pip-version-check -r $(A2A_CLIENTS)/requirements.txt
	CGO_ENABLED=0 $(GO) build -o bin/a2aclients/a2a github.com/a2aproject/a2a-go/v2/cmd/a2a
	touch bin/a2aclients/.made

# The libraries of others that the UAMP gateway's counterparts are made with.
UAMP_CLIENTS = host/internal/gateway/uamp/uamptest/peers

uamp-clients: bin/uampclients/.made

# A client of gRPC by others. Its version stands here, and not in go.mod, so that the host
# does not depend on what it imports.
GRPCURL = github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4

bin/uampclients/.made: Makefile $(UAMP_CLIENTS)/node/package.json $(UAMP_CLIENTS)/node/package-lock.json $(UAMP_CLIENTS)/python/requirements.txt
	mkdir -p bin/uampclients
	cp $(UAMP_CLIENTS)/node/package.json $(UAMP_CLIENTS)/node/package-lock.json bin/uampclients
	cd bin/uampclients && npm ci --silent --ignore-scripts
	$(PYTHON) -m venv --clear bin/uampclients/python
	bin/uampclients/python/bin/python -m pip install --quiet --disable-pip-version-check -r $(UAMP_CLIENTS)/python/requirements.txt
	CGO_ENABLED=0 GOBIN=$(CURDIR)/bin/uampclients $(GO) install $(GRPCURL)
	touch bin/uampclients/.made

# The library of others that the ACP program in Node is made with.
ACP_CLIENTS = host/internal/gateway/acp/acptest/peers/node

acp-clients: bin/acpclients/.made

bin/acpclients/.made: $(ACP_CLIENTS)/package.json $(ACP_CLIENTS)/package-lock.json
	mkdir -p bin/acpclients
	cp $(ACP_CLIENTS)/package.json $(ACP_CLIENTS)/package-lock.json bin/acpclients
	cd bin/acpclients && npm ci --silent --ignore-scripts
	touch bin/acpclients/.made

# The tool of others that judges a host by spec/openapi.yaml.
OPENAPI_TOOL = host/mailtest/testdata/schemathesis

openapi-tool: bin/openapi/.made

bin/openapi/.made: $(OPENAPI_TOOL)/requirements.txt
	$(PYTHON) -m venv --clear bin/openapi
	bin/openapi/bin/python -m pip install --quiet --disable-pip-version-check -r $(OPENAPI_TOOL)/requirements.txt
	touch bin/openapi/.made

# A real host against its description, with EXAMPLES requests of random data for each
# operation, other ones for each SEED. `make test` has a short form.
openapi-check: guests openapi-tool
	SKEP_OPENAPI_EXAMPLES=$(or $(EXAMPLES),100) SKEP_OPENAPI_SEED=$(SEED) $(GO) test -count=1 -timeout 120m -run '^TestSchemathesis$$' -v ./host/mailtest

# What a thousand WebSockets of ACP cost, with ten agents each.
acp-sockets:
	SKEP_TEST_SOCKETS=1000 $(GO) test -count=1 -run '^TestSocketMemory$$' -v ./host/internal/gateway/acp

# What ten thousand idle connections of IaCP cost.
iacp-connections:
	SKEP_TEST_CONNECTIONS=10000 $(GO) test -count=1 -run '^TestIdleMemory$$' -v ./host/internal/gateway/iacp

run: build
	./bin/skep run '$(QUESTION)'

serve: build
	./bin/skep serve

# The compiler of TypeScript, where npm ci puts it.
TSC = host/internal/gateway/acp/gen/testdata/typescript/node_modules/.bin/tsc

test: guests
	@$(if $(RACE),,echo "no C compiler found: testing without the race detector")
	@test -x bin/openapi/bin/schemathesis || echo "no bin/openapi found: no tool of others judges the host by its description; make openapi-tool installs it"
	@PATH=$$PATH:/usr/sbin; for p in mosquitto mosquitto_pub mosquitto_sub; do command -v $$p >/dev/null || echo "no $$p found: ACP over MQTT is not tried"; done
	@PATH=$$PATH:/usr/sbin; command -v rabbitmq-server >/dev/null || echo "no rabbitmq-server found: AMP over RabbitMQ is not tried"
	@PATH=$$PATH:$$(echo /usr/lib/postgresql/*/bin | tr ' ' :); command -v initdb >/dev/null || echo "no initdb found: the store is not tried on PostgreSQL"
	@command -v kcat >/dev/null || echo "no kcat found: AMP over Kafka is not tried"
	@PATH=$$PATH:/usr/sbin; command -v haproxy >/dev/null || echo "no haproxy found: the balancer of host/docs/deploy is not tried"
	@command -v promtool >/dev/null || echo "no promtool found: the alerts of host/docs/deploy are not tried"
	@command -v gtlsclient >/dev/null || echo "no gtlsclient found: no client of others tries HTTP/3"
	@command -v curl >/dev/null || echo "no curl found: UAMP is not tried with it over HTTP/2"
	@for p in node python3 javac java scalac scala rustc; do command -v $$p >/dev/null || echo "no $$p found: the code that skep acp generates for it is not tried"; done
	@command -v tsc >/dev/null || test -x $(TSC) || echo "no tsc found: generated TypeScript is not tried; npm ci in $(TSC:/node_modules/.bin/tsc=) installs it"
	@set -e; for m in $(MODULES); do echo "== $$m"; cd $(CURDIR)/$$m; \
		$(TEST) $(NOREADER) $(TESTFLAGS) $$($(GO) list ./... | grep -vx $(READER)); done
	@echo "== $(READER)"; $(TEST) $(TESTFLAGS) $(READER)
	@echo "== sdk/amp"; cd sdk/amp && $(PYTHON) -B -m unittest amp_mesh_test

check: fmt tidy generate lint
	@set -e; for m in $(MODULES); do echo "== $$m"; (cd $$m && $(GO) vet ./...); done
	$(MAKE) test

# staticcheck in the version that go.mod names, over all modules.
lint:
	CGO_ENABLED=0 $(GO) build -o bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	@set -e; for m in $(MODULES); do echo "== staticcheck $$m"; (cd $$m && CGO_ENABLED=0 $(CURDIR)/bin/staticcheck ./...); done

# What should build on other systems is type-checked for them; .ci/unported lists the
# rest.
systems:
	CGO_ENABLED=0 $(GO) run ./host/internal/house/systems darwin windows

# The program of Windows and the locks under wine, 10 or later: scripts of the commands
# and of hosts that need no modes of files. CI has no wine.
WINE ?= wine
windows:
	@command -v $(WINE) >/dev/null || { echo "$(WINE) is missing: name one with WINE=, nothing was tried"; exit 1; }
	CGO_ENABLED=0 GOOS=windows $(GO) test -count=1 -exec '$(WINE)' ./host/internal/filelock
	SKEP_WINE=$(WINE) $(GO) test -count=1 -timeout 30m -parallel 2 ./host/cmd/skep \
		-run 'TestScripts/(breakpoint|check|emit|escape|help|inspect|interrupt|json|keys|loglevel|reload|replay|run|show|state|tenants|tokens|validate|version)$$'

fmt:
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "gofmt would change:"; echo "$$out"; exit 1; }

tidy:
	@set -e; for m in $(MODULES); do (cd $$m && $(GO) mod tidy -diff); done

generate:
	@set -e; for m in $(MODULES); do (cd $$m && $(GO) generate ./...); done
	@git diff --exit-code -- . || { echo "generated files were not up to date"; exit 1; }

bench: guests
	cd host/bench && $(GO) run . $(BENCHFLAGS)

# Every decoder of outside bytes, FUZZTIME each, and then every endpoint of a real
# host, APITIME all together.
fuzz: guests
	@set -e; for p in $$(grep -rl --include='*_test.go' '^func Fuzz' spec abi host | xargs -n1 dirname | sort -u); do \
		for f in $$(grep -h '^func Fuzz' $$p/*_test.go | sed 's/func \(Fuzz[A-Za-z0-9_]*\).*/\1/'); do \
			echo "== $$p $$f"; $(GO) test ./$$p -run '^$$' -fuzz "^$$f$$" -fuzztime $(or $(FUZZTIME),1m) -fuzzminimizetime 1s; done; done
	SKEP_FUZZ_API=$(or $(APITIME),10m) $(GO) test -count=1 -timeout 120m -run '^TestFuzzInterface$$' -v ./host/mailtest

# Simulated faults, SEEDS seeds from SEED on; `make test` runs them for a minute.
simulate:
	cd host/internal/simulation && CGO_ENABLED=0 SKEP_SEEDS=$(or $(SEEDS),1000) SKEP_SEED=$(or $(SEED),0) $(GO) test -count=1 -timeout 0 -run '^TestSimulate$$'

# A million events of the live feed, whose readers come, go and stop; `make test` has it, too.
pulse:
	$(GO) test -count=1 -timeout 20m -run '^TestManyEvents$$' -v ./host/internal/telemetry/pulse

# The tests of whole hosts once more, each host on a schema of a real PostgreSQL server, or
# those of some PACKAGES.
test-postgres: guests
	SKEP_TEST_STORE=postgres $(TEST) $(NOREADER) $(TESTFLAGS) $(or $(PACKAGES),./host/internal/hosttest/... ./host/client ./host/mailtest/... ./host/internal/gateway/a2a ./host/internal/gateway/acp ./host/internal/gateway/contract ./host/internal/gateway/iacp ./host/internal/gateway/uamp)

# The primary of a host's PostgreSQL server is killed under load and its standby promoted,
# FAILOVERS times, and 1,000 connections break between a COMMIT and its answer, of which
# `make test` has 200.
failover: guests
	SKEP_FAILOVERS=$(or $(FAILOVERS),10) $(GO) test -count=1 -timeout 60m -run '^(TestFailover|TestLaggingStandby)$$' -v ./host/internal/hosttest/crash
	SKEP_CUTS=1000 $(GO) test -count=1 -timeout 60m -run '^TestCut$$' -v ./host/internal/store/postgres

# Three hosts that share a PostgreSQL server and its standby under load, while hosts are killed, stand
# still and are cut off, their clocks jump, and the primary is lost, for LENGTH: nothing is lost or done twice, and no
# task stalls for longer than its bar, which needs a quiet machine. It compiles all packages of the program anew, with a
# clock of its own. `make test` has each disturbance once, but for the clocks. First, eight stores write the same keys in
# shuffled order, for ten times as long as in `make test`.
soak-cluster: guests
	SKEP_SHUFFLED=30s $(GO) test -count=1 -run '^TestSharedShuffled$$' -v ./host/internal/store/sqlite
	SKEP_SOAK_CLUSTER=$(or $(LENGTH),10m) $(GO) test -count=1 -timeout 600m -run '^TestSoakCluster$$' -v ./host/internal/hosttest/cluster

# The tests of hosts that are silent, and the soak of three hosts, must fail without the fence in front of
# what hosts write.
soak-cluster-control: guests
	$(GO) test -count=1 -run '^TestControl$$' -v ./host/internal/store/cluster
	SKEP_SOAK_CONTROL=1 $(GO) test -count=1 -timeout 60m -run '^TestSoakControl$$' -v ./host/internal/hosttest/cluster

# 100,000 tasks of a host from a data directory to a PostgreSQL server and back: exports and
# replays are the same, and turns that wait go on.
migrate-large: guests
	SKEP_MIGRATE_TASKS=100000 $(GO) test -count=1 -timeout 2h -run '^TestMigrateManyTasks$$' -v ./host/internal/hosttest/pages

# The long forms of the crash test, of questions over IaCP, of a million turns in the sandbox and of what
# metering changes; the short ones are part of `make test`.
soak: guests
	SKEP_SOAK=1 $(GO) test $(RACE) -count=1 -timeout 60m -run 'TestKill|TestWireNeverHeals|TestSoakIACP' -v ./host/...
	SKEP_SOAK=1 $(GO) test -count=1 -timeout 60m -run 'TestSoak$$' -v ./host/internal/conform
	SKEP_SOAK=1 $(GO) test -count=1 -timeout 60m -run 'TestMeterAgrees$$' -v $(READER)
	SKEP_SOAK=1 $(GO) test $(RACE) -count=1 ./host/internal/gateway/flow
	SKEP_EXCHANGES=100000 $(GO) test -count=1 -timeout 60m -run 'Exchanges' ./host/internal/swarm

# Questions that pass two hosts over all protocols, in whose middle one was killed, RUNS of
# them; `make test` has twelve.
chaos: guests
	SKEP_KILLED_RUNS=$(or $(RUNS),1000) $(GO) test -count=1 -timeout 600m -run '^TestKillEverywhere$$' -v ./host/internal/hosttest/crash

# Two hosts under the questions of guests over all gateways, while they are killed, reloaded and
# cut off, for LENGTH: each question has one answer, and nothing is held that is over. `make test`
# has 20 s of it.
soak-gateways: guests
	SKEP_SOAK_GATEWAYS=$(or $(LENGTH),1h) $(GO) test -count=1 -timeout 600m -run '^TestSoakGateways$$' -v ./host/internal/hosttest/crash

# The prebuilt guests of other languages, and the hostile corpus, against their
# sources, for the tools that are found. With SKEP_TOOLCHAINS=required all must be.
guests-check: guests
	sdk/rebuild.sh check
	host/internal/turn/wasm/testdata/hostile/rebuild.sh check

# Our model, schemas and description against the published ones: make conform-reference REF=dir
conform-reference:
	@test -n "$(REF)" || { echo "usage: make conform-reference REF=directory-of-the-published-schemas"; exit 2; }
	SKEP_REFERENCE=$(abspath $(REF)) $(GO) test ./host/internal/schema ./spec/openapi -run 'TestReference|TestPublishedDescription' -count=1 -v

# Runs the tests that name a statement and writes spec/CONFORMANCE.md. A test that lacks a
# compiler fails: the table would say "skip" of it on this machine, and "pass" on others.
conformance: guests mcp-clients a2a-clients uamp-clients acp-clients
	SKEP_TOOLCHAINS=required $(GO) test -json -count=1 -timeout 20m $$($(GO) run ./spec/conformance/table -list) > bin/conformance.json; \
		code=$$?; $(GO) run ./spec/conformance/table -results bin/conformance.json && exit $$code

clean:
	rm -rf bin
