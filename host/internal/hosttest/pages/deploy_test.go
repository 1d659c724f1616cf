package pages_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"skep/host/internal/definition/config"
	"skep/host/internal/hosttest"
)

const deployDir = "../../../docs/deploy"

// deployVariables are what the file of the hosts takes from their environment.
var deployVariables = map[string]string{
	"SKEP_DSN": "postgres://skep@one,two/skep?target_session_attrs=read-write", "SKEP_KEYRING": strings.Repeat("5e", 32),
	"SKEP_ADVERTISE": "https://skep-1:8000", "SKEP_OPERATOR_KEY": "a-key-of-the-operator", "SKEP_USER_KEY": "a-key-of-alice-the-user",
}

// deployed loads the file of the hosts, without the certificate.
func deployed(t *testing.T) *config.Config {
	t.Helper()
	dir := t.TempDir()
	const certificate = "[server.tls]\ncert = \"/etc/skep/tls.crt\"\nkey = \"/etc/skep/tls.key\"\n"
	text, without := hosttest.ReadText(t, filepath.Join(deployDir, "swarm.toml")), ""
	if without = strings.Replace(text, certificate, "plain_http = true\n", 1); without == text {
		t.Errorf("the file has no\n%s", certificate)
	}
	if err := os.WriteFile(filepath.Join(dir, "swarm.toml"), []byte(without), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	cfg, err := config.Load(filepath.Join(dir, "swarm.toml"), config.Options{BundleDir: hosttest.Bundles(), Env: func(name string) (string, bool) {
		value, ok := deployVariables[name]
		asked[name] = true
		return value, ok
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name := range deployVariables {
		if !asked[name] {
			t.Errorf("the file does not take %s", name)
		}
	}
	return cfg
}

// documentsOf are the documents of a YAML file.
func documentsOf(t *testing.T, name string) (all []map[string]any) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader([]byte(hosttest.ReadText(t, filepath.Join(deployDir, name)))))
	for {
		var one map[string]any
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, one)
	}
}

// at walks down names and numbers of a document.
func at(t *testing.T, doc any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch in := doc.(type) {
		case map[string]any:
			doc = in[step.(string)]
		case []any:
			doc = in[step.(int)]
		default:
			t.Fatalf("%v is not there at %v", path, step)
		}
	}
	return doc
}

// checkServe wants arguments to be ones that skep serve takes.
func checkServe(t *testing.T, args []string) {
	t.Helper()
	help, err := exec.Command(hosttest.Program(t), args[0], "--help").CombinedOutput()
	if err != nil || args[0] != "serve" {
		t.Fatalf("%v: %v %s", args, err, help)
	}
	for _, arg := range args[1:] {
		if strings.HasPrefix(arg, "-") && !regexp.MustCompile(`(^|[\s,])`+regexp.QuoteMeta(arg)+`[\s,]`).Match(help) {
			t.Errorf("skep serve has no %s", arg)
		}
	}
}

// checkGrace wants a time to be longer than a host may take to stop.
func checkGrace(t *testing.T, cfg *config.Config, grace time.Duration) {
	t.Helper()
	if stops := cfg.Server.ShutdownGrace + cfg.Cluster.Handover; grace <= stops {
		t.Errorf("a host is killed after %v, and may take %v to stop", grace, stops)
	}
}

// TestDeployCompose: each host of compose.yaml has the variables of the file, an address of its own that is
// a service, arguments that skep takes, and time to stop; the balancer knows all hosts and their ports.
func TestDeployCompose(t *testing.T) {
	t.Parallel()
	cfg := deployed(t)
	services := at(t, documentsOf(t, "compose.yaml")[0], "services").(map[string]any)
	balancer := hosttest.ReadText(t, filepath.Join(deployDir, "haproxy.cfg"))
	_, port, _ := strings.Cut(cfg.Server.Listen, ":")
	_, admin, _ := strings.Cut(cfg.Server.AdminListen, ":")
	if !strings.Contains(balancer, "GET /readyz") || !strings.Contains(balancer, "check-ssl port "+admin) {
		t.Error("the balancer does not look at /readyz")
	}
	hosts := 0
	for name, service := range services {
		if at(t, service, "image") != "skep" {
			continue
		}
		hosts++
		env := at(t, service, "environment").(map[string]any)
		for variable := range deployVariables {
			if env[variable] == nil {
				t.Errorf("%s has no %s", name, variable)
			}
		}
		if env["SKEP_ADVERTISE"] != "https://"+name+":"+port || !strings.Contains(balancer, "server "+name+" "+name+":"+port+" verifyhost "+name+"\n") {
			t.Errorf("%s is reached at %v, or not by the balancer", name, env["SKEP_ADVERTISE"])
		}
		checkServe(t, strings.Fields(at(t, service, "command").(string)))
		grace, err := time.ParseDuration(at(t, service, "stop_grace_period").(string))
		if err != nil {
			t.Error(err)
		}
		checkGrace(t, cfg, grace)
		for _, other := range at(t, service, "depends_on").([]any) {
			if services[other.(string)] == nil {
				t.Errorf("%s depends on %v, which is not there", name, other)
			}
		}
	}
	if hosts != 3 {
		t.Errorf("%d hosts, want 3", hosts)
	}
}

// TestDeployKubernetes: the pods of kubernetes.yaml have the variables of the file, arguments that skep takes,
// probes of its admin listener, time to stop, and a budget of one that is away.
func TestDeployKubernetes(t *testing.T) {
	t.Parallel()
	cfg := deployed(t)
	kinds := map[string]map[string]any{}
	for _, doc := range documentsOf(t, "kubernetes.yaml") {
		kinds[doc["kind"].(string)] = doc
	}
	if got := at(t, kinds["PodDisruptionBudget"], "spec", "maxUnavailable"); got != 1 {
		t.Errorf("%v hosts may be away", got)
	}
	pod := at(t, kinds["StatefulSet"], "spec", "template", "spec")
	checkGrace(t, cfg, time.Duration(at(t, pod, "terminationGracePeriodSeconds").(int))*time.Second)
	skep := at(t, pod, "containers", 0)
	var names, args []string
	for _, variable := range at(t, skep, "env").([]any) {
		names = append(names, at(t, variable, "name").(string))
	}
	for variable := range deployVariables {
		if !slices.Contains(names, variable) {
			t.Errorf("the pods have no %s", variable)
		}
	}
	for _, arg := range at(t, skep, "args").([]any) {
		args = append(args, arg.(string))
	}
	checkServe(t, args)
	for probe, path := range map[string]string{"readinessProbe": "/readyz", "livenessProbe": "/livez"} {
		if at(t, skep, probe, "httpGet", "path") != path || at(t, skep, probe, "httpGet", "port") != "admin" || at(t, skep, probe, "httpGet", "scheme") != "HTTPS" {
			t.Errorf("%s is %v", probe, at(t, skep, probe))
		}
	}
	for i, address := range []string{cfg.Server.Listen, cfg.Server.AdminListen} {
		if _, port, _ := strings.Cut(address, ":"); port != fmt.Sprint(at(t, skep, "ports", i, "containerPort")) {
			t.Errorf("port %d of the pods is not %s", i, port)
		}
	}
}
