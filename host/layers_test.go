package host_test

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

// layers is what each package may import of this module; tests may import
// anything. A package that is missing here may import nothing of it.
var layers = map[string][]string{
	"spec":                          {},
	"spec/openapi":                  {},
	"spec/openapi/generate":         {"spec/openapi"},
	"spec/conformance/table":        {"spec/openapi"},
	"spec/mail":                     {},
	"abi":                           {"spec/mail"},
	"abi/pluginpb":                  {},
	"abi/pluginpb/generate":         {},
	"host/client":                   {"spec/mail"},
	"host/internal/wasmbin":         {},
	"host/internal/guard":           {},
	"host/internal/listen":          {},
	"host/internal/toolpin":         {},
	"host/internal/mcpclient":       {"abi", "host/internal/egress", "host/internal/subprocess", "host/internal/toolpin"},
	"host/internal/config":          {"host/internal/authority", "host/internal/envelope", "host/internal/keyring", "host/internal/listen", "host/internal/toolpin", "spec/mail"},
	"host/internal/recompose":       {"host/internal/config", "spec/mail"},
	"host/internal/plan":            {"host/internal/config"},
	"host/internal/schema":          {"spec", "spec/mail"},
	"host/internal/fair":            {},
	"host/internal/meter":           {},
	"host/internal/swarm":           {"abi", "host/internal/fair", "host/internal/meter", "spec/mail"},
	"host/internal/keyring":         {"host/internal/lasting"},
	"host/internal/lasting":         {},
	"host/internal/runset":          {"host/internal/lasting"},
	"host/internal/store/sqlite":    {"abi", "host/internal/auth", "host/internal/fair", "host/internal/guard", "host/internal/keyring", "host/internal/swarm", "spec/mail"},
	"host/internal/sandbox":         {"abi", "host/internal/guard", "host/internal/wasmbin"},
	"host/internal/capability":      {"abi", "host/internal/egress", "host/internal/sandbox", "host/internal/swarm"},
	"host/internal/model":           {"abi", "host/internal/egress"},
	"host/internal/model/modeltest": {"abi", "host/internal/model"},
	"host/internal/subprocess":      {"abi", "abi/pluginpb", "host/internal/sandbox"},
	"host/internal/recent":          {},
	"host/internal/audit":           {},
	"host/internal/auth":            {"host/internal/recent", "spec/mail"},
	"host/internal/authority":       {"host/internal/auth", "host/internal/recent"},
	"host/internal/egress":          {"abi"},
	"host/internal/jail":            {"abi"},
	"host/internal/registry":        {"abi", "host/internal/egress", "host/internal/lasting", "host/internal/swarm", "spec/mail"},
	"host/internal/envelope":        {},
	"host/internal/router":          {"abi", "host/internal/egress", "host/internal/envelope", "host/internal/fair", "host/internal/swarm", "spec/mail"},
	"host/internal/rest":            {"abi", "host/internal/audit", "host/internal/auth", "host/internal/listen", "host/internal/meter", "host/internal/plan", "host/internal/registry", "host/internal/swarm", "spec", "spec/mail"},
	"host/internal/guests":          {},
	"host/internal/guests/build":    {"host/internal/guests", "host/internal/sandbox"},
	"host/internal/store/storetest": {"abi", "host/internal/auth", "host/internal/swarm", "spec/mail"},
	"host": {
		"abi", "host/internal/audit", "host/internal/auth", "host/internal/authority", "host/internal/capability", "host/internal/config", "host/internal/egress", "host/internal/envelope", "host/internal/guard",
		"host/internal/jail", "host/internal/keyring", "host/internal/listen", "host/internal/mcpclient", "host/internal/model", "host/internal/plan", "host/internal/recompose", "host/internal/registry", "host/internal/rest", "host/internal/router", "host/internal/runset", "host/internal/sandbox", "host/internal/schema", "host/internal/store/sqlite",
		"host/internal/subprocess", "host/internal/swarm", "host/internal/toolpin", "host/internal/wasmbin",
	},
	"host/internal/scaffold":          {},
	"host/internal/scaffold/source":   {},
	"host/internal/scaffold/generate": {"host/internal/scaffold/source"},
	"host/internal/conform":           {"abi", "host/internal/sandbox", "host/internal/schema", "host/internal/wasmbin", "spec/conformance"},
	"host/internal/isolation":         {"host", "host/client", "host/internal/config"},
	"host/internal/cli": {
		"abi", "host", "host/client", "host/internal/config", "host/internal/conform", "host/internal/guard", "host/internal/isolation",
		"host/internal/mcpclient", "host/internal/sandbox", "host/internal/scaffold", "host/internal/subprocess", "host/internal/toolpin", "host/internal/wasmbin", "spec/mail",
	},
	"host/cmd/skep":         {"host/internal/cli"},
	"host/mailtest/refpeer": {"host/mailtest/refclient"},
}

// only names the packages that may import a library, separated by spaces.
var only = map[string]string{
	"github.com/tetratelabs/wazero":       "host/internal/sandbox",
	"github.com/BurntSushi/toml":          "host/internal/config host/internal/model",
	"github.com/openai/openai-go":         "host/internal/model",
	"github.com/anthropics":               "host/internal/model",
	"github.com/xeipuuv/gojsonschema":     "host/internal/schema",
	"github.com/santhosh-tekuri":          "spec/openapi",
	"github.com/julienschmidt/httprouter": "host/internal/rest",
	"github.com/go-jose/go-jose":          "host/internal/authority host/internal/envelope",
	"github.com/gowebpki/jcs":             "host/internal/envelope host/internal/toolpin",
	"github.com/modelcontextprotocol":     "host/internal/mcpclient",
	"modernc.org/sqlite":                  "host/internal/store/sqlite",
	"github.com/klauspost/compress":       "host/internal/store/sqlite",
	"github.com/spf13/cobra":              "host/internal/cli",
	"github.com/hashicorp":                "host/internal/subprocess",
	"github.com/landlock-lsm":             "host/internal/subprocess",
}

// TestLayers holds the direction of imports, who owns which library, and that
// every package says what it is.
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

// TestNamesOfAgentsMetrics: no metric of the host is called as those of agents are.
func TestNamesOfAgentsMetrics(t *testing.T) {
	t.Parallel()
	eachFile(t, func(pkg, path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"skep_agent_`) && filepath.Base(path) != "series.go" {
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
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != ".." || d.Name() == "testdata" || d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			pkg, _ := filepath.Rel("..", filepath.Dir(path))
			visit(filepath.ToSlash(pkg), path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
