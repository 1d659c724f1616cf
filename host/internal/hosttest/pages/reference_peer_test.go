package pages_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
	"skep/host/mailtest/refpeer"
)

// TestReferencePeerPage: the page's commands make a host and a reference server work
// together.
func TestReferencePeerPage(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		if guests.ToolchainsRequired() {
			t.Fatal("curl is not here, and all tools are required: ", err)
		}
		t.Skip("curl is not here, so the page is not tried: ", err)
	}
	const admin, key = "a-key-of-the-admin-of-beta", "a-key-of-hive-at-beta"
	beta, err := refpeer.New(refpeer.Options{
		Name: "beta", Entrypoint: "chief", Agents: []string{"chief"}, Keys: map[string]string{key: "hive"}, AdminKey: admin,
		Act: func(p *refpeer.Peer, m refpeer.Mail) {
			if m.Kind == "request" {
				_, _ = p.Response(m.Task, m.Agent, m.From, "Re: "+m.Subject, "two in bin 9")
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(beta.Close)
	hive := hosttest.NewSite(t, strings.NewReplacer("NAME", "hive", "TARGETS", `"chief@beta"`).Replace(hosttest.FederatedSwarm))
	p, dir := install(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hive-at-beta.token"), []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.path, filepath.Join(dir, "skep")); err != nil {
		t.Fatal(err)
	}
	place := strings.NewReplacer("https://beta.example", beta.URL(), "https://hive.example", "http://"+hive.Addr())
	env := append(p.env, "PATH="+dir+":"+os.Getenv("PATH"), "BETA_ADMIN="+admin, "SKEP_TOKEN="+hosttest.OperatorKey, "SKEP_URL=http://"+hive.Addr())
	all := consoleOf(t, "../../../docs/peers.md", "A peer that runs the reference server")
	if len(all) != 5 {
		t.Fatalf("the page has %d commands", len(all))
	}
	for _, s := range all {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", place.Replace(s.command))
		var stderr bytes.Buffer
		cmd.Dir, cmd.Env, cmd.Stderr = dir, env, &stderr
		if out, err := cmd.Output(); err != nil || !s.matches(string(out)) {
			t.Errorf("$ %s\n%s%s%v, want\n%s", s.command, out, &stderr, err, s.output)
		}
	}
}
