package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const withACP = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "bundled:script"
comm_targets = ["boss"]
can_complete_tasks = true
enable_entrypoint = true
expose = ["acp"]
[gateways.acp]
dsl = "file:acme.acp"
`

// declarations are compiled when the file is read; what is wrong with them is
// a fault of the file, with their own place.
func TestDeclarationsOfACP(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile("../../../../spec/gateways/acp/acp-1.0.acp")
	if err != nil {
		t.Fatal(err)
	}
	with := func(old, changed string) string { return strings.Replace(string(good), old, changed, 1) }
	for _, c := range []struct{ text, want string }{
		{string(good), ""},
		{with("conversation_id: String?", "conversation_id: String?, x_order: Int?, x_token: String"), ""},
		{with("sender: AgentID", "sender: AgntID"), `gateways.acp.dsl: acme.acp:27:13: there is no type AgntID (did you mean "AgentID"?); see skep acp check`},
		{with("sender: AgentID,", ""), "header.sender must be as in ACP 1.0: a String, and not optional"},
		{with("reply_to: MessageID?", "reply_to: MessageID"), "header.reply_to must be as in ACP 1.0: a String, and optional"},
		{with("body: Content", "body: Int"), "Message must have the members header, a record, and body, a String"},
		{with("body: Content", "body: Content, more: Int?"), "Message must have the members header, a record, and body, a String"},
		{with("  QUERY,", "  QUERY, PROPOSE,"), "header.type must be an enum of REQUEST, RESPONSE, INFORM, QUERY, ACKNOWLEDGE, ERROR"},
		{"type A = String", "no record is declared that a message could be"},
		{`import "more.acp"`, "the file cannot be read"},
		{strings.Repeat(" ", 2<<20), "more than 1048576 bytes"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "acme.acp"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := Parse("swarm.toml", []byte(withACP), dir, testOptions)
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("want %q, got %v", c.want, err)
		case c.want == "" && err != nil:
			t.Error(err)
		case c.want == "" && cfg.Gateways[0].Protocol.(*ACP).Declarations == nil:
			t.Error("no declarations")
		}
	}
	for text, want := range map[string]string{"file:": "must name a file", "acme.acp": "must name a file", "file:other.acp": "other.acp"} {
		if _, err := Parse("swarm.toml", []byte(strings.Replace(withACP, "file:acme.acp", text, 1)), t.TempDir(), testOptions); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The right relay has an effect for partners of ACP alone.
func TestRelayRight(t *testing.T) {
	t.Parallel()
	base, _, _ := strings.Cut(withACP, "[gateways.acp]")
	for name, effective := range map[string]bool{"acp": true, "a2a": false} {
		text := strings.Replace(base, `expose = ["acp"]`, `expose = ["`+name+`"]`, 1) + "[gateways." + name + ".partners.shop]\nmay = [\"ask\", \"relay\"]\n"
		c, err := Parse("swarm.toml", []byte(text), t.TempDir(), testOptions)
		if err != nil {
			t.Fatal(err)
		}
		if warned := strings.Contains(fmt.Sprint(c.Warnings), "may[1] has no effect"); warned == effective {
			t.Errorf("%s: warnings %v", name, c.Warnings)
		}
	}
}
