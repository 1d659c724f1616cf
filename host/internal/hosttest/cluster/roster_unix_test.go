//go:build unix

package cluster_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/api/audit"
	"skep/host/internal/hosttest"
)

// TestClusterCommands: an operator sees the hosts, drains one, whose tasks the others go on with, and
// finalizes; a user does not. What was done is in the audit log, and top counts the work of both.
func TestClusterCommands(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	hosts := hostsOf(t, 2)
	clients := clientsOf(hosts)
	command := func(p *hosttest.Process, key string, args ...string) (string, error) {
		cmd := exec.Command(hosttest.Program(t), append(args, "--url", "http://"+p.Addr)...)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "SKEP_TOKEN="+key)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	skep := func(p *hosttest.Process, key string, args ...string) (string, error) {
		return command(p, key, append([]string{"cluster"}, args...)...)
	}
	list := func() (found client.Cluster) {
		out, err := skep(hosts[0], operatorKey, "list", "-o", "json")
		if err == nil {
			err = json.Unmarshal([]byte(out), &found)
		}
		if err != nil {
			t.Fatal(out, err)
		}
		return found
	}
	waitReady(t, hosts[0])
	hosttest.Eventually(t, "both hosts have their slots", func() bool {
		found := list()
		return len(found.Hosts) == 2 && found.Hosts[1].Slots > 500 && found.Hosts[0].Slots+found.Hosts[1].Slots == 1024
	})
	loaded := startLoad(t, clients, "d", 24, 6)
	address := "http://" + hosts[1].Addr
	if out, err := skep(hosts[1], operatorKey, "drain", address); err != nil || !strings.Contains(out, " slots away; skep cluster list shows when it has none") {
		t.Error(out, err)
	}
	hosttest.Eventually(t, "the host is drained", func() bool {
		for _, h := range list().Hosts {
			if h.Address == address {
				return h.State == "drained"
			}
		}
		return false
	})
	loaded()
	hosttest.Eventually(t, "top has the ends of all tasks, of both hosts", func() bool {
		var page struct {
			Hosts   []string
			Tenants []struct{ Ended int }
		}
		out, err := command(hosts[1], operatorKey, "top", "--once", "-o", "json")
		if err == nil {
			err = json.Unmarshal([]byte(out), &page)
		}
		return err == nil && len(page.Hosts) == 2 && len(page.Tenants) > 0 && page.Tenants[len(page.Tenants)-1].Ended == 24
	})
	for _, refused := range []struct{ key, command, host, want string }{
		{operatorKey, "drain", "http://" + hosts[0].Addr, "the last one that takes tasks"},
		{operatorKey, "drain", "http://nowhere", `no host of the cluster has the id or address "http://nowhere"`},
		{hosttest.ScriptKey, "drain", address, "operator"},
		{hosttest.ScriptKey, "list", "", "operator"},
		{hosttest.ScriptKey, "finalize", "", "operator"},
	} {
		args := strings.Fields(refused.command + " " + refused.host)
		if out, err := skep(hosts[0], refused.key, args...); err == nil || !strings.Contains(out, refused.want) {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	rsp, metrics := hosttest.Fetch(t, http.DefaultClient, "http://"+hosts[0].Admin()+"/metrics")
	for _, want := range []string{
		"skep_cluster_hosts 2\n", `skep_cluster_slots{state="here"} 1024`, `skep_cluster_slots{state="nowhere"} 0`, "skep_cluster_fences_total 0\n",
		"skep_cluster_feature_level 2\n", "skep_cluster_beats_late_total ", "skep_cluster_slots_given_total ", "skep_cluster_slots_taken_total ",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s: the metrics have no %s", rsp.Status, want)
		}
	}
	if _, metrics := hosttest.Fetch(t, http.DefaultClient, "http://"+hosts[1].Admin()+"/metrics"); !strings.Contains(metrics, `skep_cluster_forward_duration_seconds_count{outcome="answered"}`) {
		t.Error("the host that was drained has sent no request on")
	}
	if out, err := skep(hosts[0], operatorKey, "finalize"); err != nil || !strings.Contains(out, "the feature level is 2") {
		t.Error(out, err)
	}
	audited := hosttest.ReadText(t, filepath.Join(hosts[1].Data(), audit.Name)) + hosttest.ReadText(t, filepath.Join(hosts[0].Data(), audit.Name))
	for _, want := range []string{`"cluster.drain"`, `"cluster.finalize"`} {
		if !strings.Contains(audited, want) {
			t.Errorf("the audit logs have no %s", want)
		}
	}
}
