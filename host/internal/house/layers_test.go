package house_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the directory of the root module.
const root = "../../.."

// layers is what each package may import of this module; tests may import
// anything. A package that is missing here may import nothing of it.
var layers = map[string][]string{
	"spec":                                     {},
	"sdk":                                      {},
	"spec/openapi":                             {},
	"spec/openapi/generate":                    {"spec/openapi"},
	"spec/conformance/table":                   {"spec/openapi"},
	"spec/mail":                                {},
	"abi":                                      {"spec/mail"},
	"abi/pluginpb":                             {},
	"abi/pluginpb/generate":                    {},
	"spec/gateways/amp/taxonomy":               {},
	"spec/gateways/amp/amppb":                  {},
	"spec/gateways/uamp/uamppb":                {},
	"host/client":                              {"spec/mail"},
	"host/internal/turn":                       {"abi"},
	"host/internal/turn/wasm/binary":           {},
	"host/internal/pathcheck":                  {},
	"host/internal/filelock":                   {},
	"host/internal/logline":                    {},
	"host/internal/spelling":                   {"spec/mail"},
	"host/internal/api/listener":               {"host/internal/pathcheck"},
	"host/internal/api/http3":                  {"host/internal/api/listener"},
	"host/internal/turn/mcp/toolpin":           {},
	"host/internal/turn/mcp":                   {"abi", "host/internal/turn", "host/internal/turn/egress", "host/internal/turn/process", "host/internal/turn/mcp/toolpin"},
	"host/internal/definition/config":          {"host/internal/gateway/uamp/did", "host/internal/gateway/uamp/seal", "host/internal/api/oidc", "host/internal/gateway/acp/check", "host/internal/gateway/acp/dsl", "host/internal/gateway/verb", "host/internal/gateway/wire", "host/internal/pathcheck", "host/internal/peer/signature", "host/internal/spelling", "host/internal/store/keyring", "host/internal/store/postgres", "host/internal/api/listener", "host/internal/turn", "host/internal/turn/egress", "host/internal/turn/mcp/toolpin", "host/internal/turn/wasm/binary", "spec/mail"},
	"host/internal/definition/config/generate": {"host/internal/definition/config"},
	"host/internal/definition/narrowing":       {"host/internal/definition/config", "spec/mail"},
	"host/internal/definition/plan":            {"host/internal/definition/config"},
	"host/internal/schema":                     {"abi", "spec", "spec/mail"},
	"host/internal/swarm/scheduler":            {},
	"host/internal/swarm/metrics":              {},
	"host/internal/telemetry":                  {"host/internal/swarm", "host/internal/swarm/metrics"},
	"host/internal/telemetry/pulse":            {"host/internal/swarm"},
	"host/internal/telemetry/loglevel":         {},
	"host/internal/telemetry/otlp":             {},
	"host/internal/telemetry/logexport":        {"host/internal/telemetry/otlp"},
	"host/internal/telemetry/trace":            {"host/internal/swarm", "host/internal/telemetry/otlp"},
	"host/internal/swarm/slot":                 {},
	"host/internal/swarm":                      {"abi", "host/internal/swarm/scheduler", "host/internal/swarm/metrics", "host/internal/swarm/slot", "spec/mail"},
	"host/internal/store/keyring":              {"host/internal/pathcheck", "host/internal/store/atomicfile"},
	"host/internal/store/atomicfile":           {},
	"host/internal/quarantine":                 {},
	"host/internal/store/sqlite":               {"abi", "host/internal/api/auth", "host/internal/gateway/state", "host/internal/peer/registry", "host/internal/quarantine", "host/internal/swarm/scheduler", "host/internal/filelock", "host/internal/pathcheck", "host/internal/store/atomicfile", "host/internal/store/keyring", "host/internal/store/postgres", "host/internal/swarm", "host/internal/swarm/slot", "spec/mail"},
	"host/internal/store/postgres":             {},
	"host/internal/store/cluster":              {"host/internal/swarm/slot"},
	"host/internal/turn/wasm":                  {"abi", "host/internal/turn", "host/internal/pathcheck", "host/internal/turn/wasm/binary"},
	"host/internal/turn/capability":            {"abi", "host/internal/turn", "host/internal/turn/egress", "host/internal/swarm"},
	"host/internal/turn/model":                 {"abi", "host/internal/turn/egress"},
	"host/internal/turn/model/modeltest":       {"abi", "host/internal/turn/model"},
	"host/internal/turn/process":               {"abi", "abi/pluginpb", "host/internal/turn"},
	"host/internal/api/audit":                  {"host/internal/filelock", "host/internal/logline", "host/internal/store/atomicfile"},
	"host/internal/api/auth":                   {"spec/mail"},
	"host/internal/api/oidc":                   {"host/internal/api/auth"},
	"host/internal/turn/egress":                {"abi"},
	"host/internal/turn/fileaction":            {"abi", "host/internal/store/atomicfile"},
	"host/internal/peer/registry":              {"abi", "host/internal/pathcheck", "host/internal/turn/egress", "host/internal/store/atomicfile", "host/internal/swarm", "spec/mail"},
	"host/internal/peer/webhook":               {"host/internal/gateway", "host/internal/swarm"},
	"host/internal/peer/signature":             {"host/internal/filelock", "host/internal/pathcheck", "host/internal/store/atomicfile"},
	"host/internal/peer/directory":             {"host/internal/api/audit", "host/internal/definition/config", "host/internal/peer/registry", "host/internal/peer/router", "host/internal/peer/signature", "host/internal/swarm", "host/internal/turn/egress"},
	"host/internal/peer/router":                {"host/internal/gateway/state", "abi", "host/internal/turn/egress", "host/internal/peer/signature", "host/internal/swarm/scheduler", "host/internal/swarm", "spec/mail"},
	"host/internal/api/rest":                   {"abi", "host/internal/api/audit", "host/internal/api/auth", "host/internal/api/listener", "host/internal/telemetry", "host/internal/telemetry/loglevel", "host/internal/telemetry/pulse", "host/internal/definition/plan", "host/internal/peer/registry", "host/internal/spelling", "host/internal/swarm", "spec", "spec/mail"},
	"host/internal/gateway":                    {"host/internal/api/auth", "host/internal/gateway/state", "host/internal/spelling", "host/internal/swarm", "host/internal/turn/egress", "spec/mail"},
	"host/internal/gateway/state":              {},
	"host/internal/gateway/verb":               {},
	"host/internal/gateway/wire":               {},
	"host/internal/gateway/grpcconn":           {"host/internal/gateway"},
	"host/internal/gateway/grpcserve":          {"host/internal/gateway/wire"},
	"host/internal/gateway/sockets":            {"host/internal/gateway"},
	"host/internal/gateway/a2a":                {"host/internal/api/auth", "host/internal/gateway", "host/internal/gateway/grpcconn", "host/internal/gateway/state", "host/internal/swarm", "host/internal/swarm/scheduler", "spec/mail", "host/internal/gateway/wire"},
	"host/internal/gateway/door":               {"abi", "host/internal/api/auth", "host/internal/gateway", "host/internal/gateway/flow", "host/internal/gateway/state", "host/internal/swarm", "spec/mail"},
	"host/internal/gateway/messagelog":         {"host/internal/api/audit", "host/internal/gateway", "host/internal/telemetry"},
	"host/internal/gateway/catalog":            {"abi", "host/internal/api/auth", "host/internal/swarm", "spec/mail", "host/internal/definition", "host/internal/definition/config", "host/internal/gateway", "host/internal/turn/egress"},
	"host/internal/gateway/flow":               {"host/internal/gateway", "host/internal/swarm"},
	"host/internal/gateway/mcp":                {"host/internal/gateway", "host/internal/schema", "host/internal/swarm", "host/internal/gateway/wire"},
	"host/internal/gateway/gatewaytest":        {"host/internal/api/auth", "host/internal/gateway", "host/internal/gateway/state", "host/internal/swarm"},
	"host/internal/gateway/acp/broker":         {},
	"host/internal/gateway/mailbox":            {"host/internal/gateway", "host/internal/gateway/state"},
	"host/internal/gateway/acp":                {"host/internal/gateway/sockets", "abi", "host/internal/spelling", "host/internal/gateway/mailbox", "host/internal/gateway/wire", "host/internal/gateway/acp/broker", "host/internal/gateway/state", "host/internal/gateway/verb", "host/internal/gateway", "host/internal/gateway/acp/check", "host/internal/gateway/acp/dsl", "host/internal/gateway/acp/message", "host/internal/swarm", "spec/mail"},
	"host/internal/gateway/acp/acptest":        {},
	"host/internal/gateway/acp/dsl":            {"host/internal/spelling"},
	"host/internal/gateway/acp/check":          {"host/internal/gateway/acp/dsl"},
	"host/internal/gateway/acp/message":        {},
	"host/internal/gateway/acp/gen":            {"host/internal/gateway/acp/check", "host/internal/gateway/acp/dsl"},
	"host/internal/gateway/amp/grpcmessage":    {"host/internal/gateway/wire", "spec/gateways/amp/amppb"},
	"host/internal/gateway/amp":                {"host/internal/gateway/amp/grpcmessage", "host/internal/gateway/grpcserve", "host/internal/gateway/grpcconn", "spec/gateways/amp/amppb", "host/internal/gateway/amp/broker", "host/internal/gateway/amp/kafka", "host/internal/gateway/sockets", "spec/gateways/amp/taxonomy", "host/internal/gateway", "host/internal/gateway/wire", "host/internal/gateway/verb", "host/internal/gateway/amp/message", "host/internal/gateway/state", "host/internal/schema", "host/internal/spelling", "host/internal/swarm", "spec/mail"},
	"host/internal/gateway/amp/amptest":        {},
	"host/internal/gateway/amp/broker":         {},
	"host/internal/gateway/amp/kafka":          {"host/internal/gateway/amp/broker"},
	"host/internal/gateway/amp/message":        {"host/internal/gateway/wire", "spec/mail"},
	"host/internal/gateway/iacp":               {"host/internal/gateway", "host/internal/gateway/mailbox", "host/internal/gateway/state", "host/internal/gateway/iacp/message", "host/internal/gateway/wire", "host/internal/swarm", "spec/mail"},
	"host/internal/gateway/iacp/iacptest":      {},
	"host/internal/gateway/iacp/message":       {"host/internal/gateway/wire", "spec/mail"},
	"host/internal/gateway/uamp/envelope":      {"host/internal/gateway/wire"},
	"host/internal/gateway/uamp/seal":          {"host/internal/gateway/wire"},
	"host/internal/gateway/uamp":               {"host/internal/api/http3", "host/internal/gateway/grpcserve", "host/internal/gateway/grpcconn", "spec/gateways/uamp/uamppb", "host/internal/gateway/uamp/frame", "host/internal/gateway/verb", "abi", "host/internal/turn/egress", "host/internal/gateway/wire", "host/internal/gateway/state", "host/internal/gateway/uamp/lifecycle", "host/internal/gateway/uamp/stream", "host/internal/swarm", "spec/mail", "host/internal/gateway", "host/internal/gateway/uamp/did", "host/internal/gateway/uamp/envelope", "host/internal/gateway/uamp/hub", "host/internal/gateway/uamp/seal"},
	"host/internal/gateway/uamp/hub":           {"host/internal/gateway", "host/internal/gateway/uamp/did", "host/internal/gateway/uamp/envelope", "host/internal/gateway/uamp/seal"},
	"host/internal/gateway/uamp/frame":         {},
	"host/internal/gateway/uamp/lifecycle":     {"host/internal/gateway/uamp/envelope"},
	"host/internal/gateway/uamp/stream":        {"host/internal/gateway/uamp/envelope"},
	"host/internal/gateway/uamp/did":           {"host/internal/api/auth", "host/internal/gateway/uamp/seal", "host/internal/gateway/wire"},
	"host/internal/golden":                     {},
	"host/internal/house":                      {},
	"host/internal/guests":                     {},
	"host/internal/bundle":                     {},
	"host/internal/bundle/pack":                {"host/internal/bundle"},
	"host/internal/guests/build":               {"host/internal/guests", "host/internal/turn", "host/internal/turn/wasm"},
	"host/internal/simulation":                 {"abi", "host/internal/peer/router", "host/internal/store/keyring", "host/internal/store/sqlite", "host/internal/swarm", "host/internal/turn", "host/internal/turn/capability", "host/internal/turn/egress", "spec/mail"},
	"host/internal/store/storetest":            {"abi", "host/internal/api/auth", "host/internal/gateway/state", "host/internal/quarantine", "host/internal/swarm", "spec/mail"},
	// A real server for tests; only tests import it.
	"host/internal/store/pgtest": {"host/internal/guests"},
	"host/internal/definition": {
		"abi", "host/internal/definition/config", "host/internal/definition/narrowing", "host/internal/definition/plan", "host/internal/gateway/verb", "host/internal/pathcheck", "host/internal/quarantine",
		"host/internal/schema", "host/internal/store/atomicfile", "host/internal/store/sqlite", "host/internal/swarm", "host/internal/turn", "host/internal/turn/capability",
		"host/internal/turn/egress", "host/internal/turn/fileaction", "host/internal/turn/mcp", "host/internal/turn/mcp/toolpin", "host/internal/turn/model",
		"host/internal/turn/process", "host/internal/turn/wasm", "host/internal/turn/wasm/binary",
	},
	"host/internal/diskspace": {},
	"host/internal/diagnosis": {
		"host/internal/api/listener", "host/internal/datadir", "host/internal/definition/config", "host/internal/diskspace", "host/internal/pathcheck", "host/internal/peer/registry", "host/internal/quarantine", "host/internal/turn/process",
	},
	"host/internal/datadir": {
		"host/internal/api/audit", "host/internal/definition", "host/internal/definition/config", "host/internal/pathcheck", "host/internal/peer/registry", "host/internal/peer/signature", "host/internal/quarantine",
		"host/internal/store/atomicfile", "host/internal/store/cluster", "host/internal/store/keyring", "host/internal/store/postgres", "host/internal/store/sqlite", "host/internal/swarm", "host/internal/turn/capability",
		"host/internal/turn/wasm",
	},
	"host/internal/api/server": {
		"host/internal/api/audit", "host/internal/api/auth", "host/internal/api/http3", "host/internal/api/listener", "host/internal/api/oidc", "host/internal/api/rest",
		"host/internal/definition", "host/internal/definition/config", "host/internal/diskspace", "host/internal/gateway", "host/internal/gateway/catalog", "host/internal/pathcheck", "host/internal/peer/directory",
		"host/internal/peer/router", "host/internal/swarm", "host/internal/swarm/slot", "host/internal/swarm/metrics", "host/internal/telemetry", "host/internal/telemetry/logexport", "host/internal/telemetry/loglevel", "host/internal/telemetry/pulse", "host/internal/telemetry/trace",
	},
	"host": {
		"host/internal/api/audit", "host/internal/api/auth", "host/internal/api/server", "host/internal/datadir", "host/internal/definition",
		"host/internal/definition/config", "host/internal/definition/plan", "host/internal/peer/directory", "host/internal/peer/router",
		"host/internal/api/rest", "host/internal/gateway", "host/internal/gateway/a2a", "host/internal/gateway/acp", "host/internal/gateway/amp", "host/internal/gateway/catalog", "host/internal/gateway/door", "host/internal/api/listener", "host/internal/gateway/iacp", "host/internal/gateway/mcp", "host/internal/gateway/messagelog", "host/internal/gateway/uamp", "host/internal/gateway/wire", "host/internal/peer/signature", "host/internal/peer/webhook",
		"host/internal/quarantine", "host/internal/schema", "host/internal/store/sqlite", "host/internal/swarm", "host/internal/telemetry", "host/internal/telemetry/logexport", "host/internal/telemetry/otlp", "host/internal/telemetry/loglevel", "host/internal/telemetry/pulse", "host/internal/telemetry/trace", "host/internal/turn/egress",
		"host/internal/quarantine", "host/internal/schema", "host/internal/store/cluster", "host/internal/store/sqlite", "host/internal/swarm", "host/internal/swarm/slot", "host/internal/turn/egress",
		"host/internal/turn/mcp",
	},
	// The contract of gateways and the protocol that only it serves; only tests import them.
	"host/internal/gateway/gatewaytest/toy": {
		"host/internal/api/auth", "host/internal/gateway", "host/internal/gateway/state", "host/internal/gateway/wire", "host/internal/swarm", "spec/mail",
	},
	"host/internal/gateway/gatewaytest/toy/peer": {},
	"host/internal/gateway/contract": {
		"host", "host/client", "host/internal/api/audit", "host/internal/definition/config", "host/internal/gateway", "host/internal/gateway/state", "host/internal/guests", "host/internal/hosttest", "host/internal/swarm",
	},
	// Programs of others for tests of a gateway; only tests import them.
	"host/internal/gateway/acp/acptest/peers": {"host/internal/gateway/acp/acptest", "host/internal/guests"},
	"host/internal/gateway/iacp/iacptest/peers": {
		"host/internal/guests",
	},
	"host/internal/gateway/uamp/uamptest/peers": {
		"host/internal/guests",
	},
	// The kit of the tests of a whole host; only tests import it.
	"host/internal/hosttest": {
		"abi", "host", "host/client", "host/internal/datadir", "host/internal/definition/config", "host/internal/guests",
		"host/internal/store/pgtest", "host/internal/store/sqlite", "host/internal/swarm", "host/internal/turn/process", "spec/mail",
	},
	"host/internal/hosttest/agent":      {},
	"host/internal/hosttest/cluster":    {},
	"host/internal/hosttest/crash":      {},
	"host/internal/hosttest/definition": {},
	"host/internal/hosttest/federation": {},
	"host/internal/hosttest/gateway":    {},
	"host/internal/hosttest/pages":      {},
	"host/internal/hosttest/security":   {},
	"host/internal/scaffold":            {"host/internal/scaffold/source", "sdk"},
	"host/internal/scaffold/source":     {},
	"host/internal/scaffold/generate":   {"host/internal/scaffold/source"},
	"host/internal/conform":             {"abi", "host/internal/turn", "host/internal/turn/wasm", "host/internal/schema", "host/internal/turn/wasm/binary", "spec/conformance"},
	"host/internal/isolation":           {"host", "host/client", "host/internal/definition/config"},
	"host/internal/cli": {
		"abi", "host", "host/client", "host/internal/bundle", "host/internal/conform", "host/internal/datadir", "host/internal/definition", "host/internal/definition/config", "host/internal/definition/plan", "host/internal/diagnosis",
		"host/internal/gateway/acp/check", "host/internal/gateway/acp/dsl", "host/internal/gateway/acp/gen", "host/internal/gateway/acp/message", "host/internal/gateway/uamp/did", "host/internal/gateway/uamp/envelope", "host/internal/gateway/uamp/hub", "host/internal/gateway/uamp/seal", "host/internal/isolation",
		"host/internal/filelock", "host/internal/logline", "host/internal/pathcheck", "host/internal/scaffold", "host/internal/spelling", "host/internal/store/atomicfile", "host/internal/store/postgres", "host/internal/turn", "host/internal/turn/egress", "host/internal/turn/mcp", "host/internal/turn/mcp/toolpin", "host/internal/turn/process",
		"host/internal/turn/wasm", "host/internal/turn/wasm/binary", "spec/mail",
	},
	"host/cmd/skep":         {"host/internal/cli"},
	"host/mailtest/refpeer": {"host/mailtest/refclient"},
}

// only names the packages that may import a library, separated by spaces.
var only = map[string]string{
	"github.com/tetratelabs/wazero":       "host/internal/turn/wasm",
	"github.com/BurntSushi/toml":          "host/internal/definition/config host/internal/turn/model",
	"github.com/openai/openai-go":         "host/internal/turn/model",
	"github.com/anthropics":               "host/internal/turn/model",
	"github.com/xeipuuv/gojsonschema":     "host/internal/schema",
	"github.com/santhosh-tekuri":          "spec/openapi",
	"github.com/julienschmidt/httprouter": "host/internal/api/rest",
	"github.com/modelcontextprotocol":     "host/internal/turn/mcp host/internal/gateway/mcp",
	"github.com/go-jose/go-jose":          "host/internal/api/oidc host/internal/gateway/a2a host/internal/gateway/iacp host/internal/gateway/uamp/seal host/internal/peer/signature",
	"github.com/gowebpki/jcs":             "host/internal/peer/signature host/internal/turn/mcp/toolpin",
	"github.com/andybalholm/brotli":       "host/internal/gateway/uamp/envelope",
	"github.com/veraison/go-cose":         "host/internal/gateway/uamp/seal",
	"github.com/fxamacker/cbor":           "host/internal/gateway/uamp/seal",
	"github.com/evanphx/json-patch":       "host/internal/gateway/uamp/stream",
	"github.com/a2aproject":               "host/internal/gateway/a2a",
	"github.com/coder/websocket":          "host/client host/internal/gateway/acp host/internal/gateway/acp/acptest host/internal/gateway/amp host/internal/gateway/amp/amptest host/internal/gateway/sockets host/internal/gateway/uamp host/internal/gateway/wire",
	"github.com/eclipse/paho.golang":      "host/internal/gateway/acp/broker",
	"github.com/rabbitmq/amqp091-go":      "host/internal/gateway/amp/broker host/internal/hosttest",
	"github.com/twmb/franz-go":            "host/internal/gateway/amp/kafka host/internal/hosttest",
	"modernc.org/sqlite":                  "host/internal/store/sqlite",
	"github.com/jackc":                    "host/internal/store/cluster host/internal/store/pgtest host/internal/store/postgres",
	"github.com/klauspost/compress":       "host/internal/gateway/uamp/envelope host/internal/store/sqlite",
	"github.com/quic-go/quic-go":          "host/internal/api/http3 host/internal/turn/egress",
	"github.com/prometheus":               "host/internal/api/rest host/internal/api/server host/internal/telemetry host/internal/telemetry/logexport host/internal/telemetry/otlp host/internal/telemetry/trace",
	"go.opentelemetry.io/otel/sdk":        "host/internal/telemetry/logexport host/internal/telemetry/otlp host/internal/telemetry/trace",
	"go.opentelemetry.io/otel/exporters":  "host/internal/telemetry/logexport host/internal/telemetry/trace",
	"go.opentelemetry.io/contrib/bridges": "host/internal/telemetry/logexport",
	"go.opentelemetry.io/proto":           "host/internal/hosttest",
	"github.com/spf13/cobra":              "host/internal/cli",
	"github.com/hashicorp":                "host/internal/turn/process",
	"github.com/landlock-lsm":             "host/internal/turn/process",
}

// TestLayers holds the direction of imports, who owns which library, and that
// every package has a comment.
func TestLayers(t *testing.T) {
	documented := map[string]bool{}
	eachFile(t, func(pkg, path string) {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		documented[pkg] = documented[pkg] || f.Doc != nil
		for _, spec := range f.Imports {
			target, _ := strconv.Unquote(spec.Path.Value)
			checkImport(t, pkg, path, target)
		}
	})
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}

// TestNamesOfAgentsMetrics: no metric of the host has a name that agents' metrics may have.
func TestNamesOfAgentsMetrics(t *testing.T) {
	t.Parallel()
	eachFile(t, func(pkg, path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"skep_agent_`) && filepath.ToSlash(path) != root+"/host/internal/telemetry/agents.go" {
			t.Errorf("%s: names that begin with skep_agent_ are for what agents report", path)
		}
	})
}

func checkImport(t *testing.T, pkg, path, target string) {
	t.Helper()
	if own, ok := strings.CutPrefix(target, "skep/"); ok && !slices.Contains(layers[pkg], own) {
		t.Errorf("%s: package %s must not import %s", path, pkg, own)
	}
	for lib, owner := range only {
		if (target == lib || strings.HasPrefix(target, lib+"/")) && !slices.Contains(strings.Fields(owner), pkg) {
			t.Errorf("%s: only %s imports %s", path, owner, lib)
		}
	}
}

// eachFile visits the Go files of the root module that are not tests.
func eachFile(t *testing.T, visit func(pkg, path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root || d.Name() == "testdata" || d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			pkg, _ := filepath.Rel(root, filepath.Dir(path))
			visit(filepath.ToSlash(pkg), path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
