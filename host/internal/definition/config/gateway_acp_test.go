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

// TestBodyRemedy: who sends what is above max_body is told to raise it only where that can be.
func TestBodyRemedy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		g    Gateway
		want string
	}{
		{Gateway{Name: "acp", MaxBody: MiB - 1}, "raise max_body of [gateways.acp]"},
		{Gateway{Name: "acp", MaxBody: MiB}, "max_body of [gateways.acp] cannot be more"},
		{Gateway{Name: "uamp", MaxBody: MiB}, "raise max_body of [gateways.uamp]"},
		{Gateway{Name: "a2a", MaxBody: 64 * MiB}, "max_body of [gateways.a2a] cannot be more"},
	} {
		if got := c.g.BodyRemedy(); got != c.want {
			t.Errorf("%s of %d bytes: %q, want %q", c.g.Name, c.g.MaxBody, got, c.want)
		}
	}
}

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
		{with("sender: AgentID,", ""), "gateways.acp.dsl: acme.acp:25:3: header.sender must be as in ACP 1.0: a String, and not optional"},
		{with("reply_to: MessageID?", "reply_to: MessageID"), "gateways.acp.dsl: acme.acp:33:5: header.reply_to must be as in ACP 1.0: a String, and optional"},
		{with("body: Content", "body: Int"), "gateways.acp.dsl: acme.acp:24:6: Message must have the members header, a record, and body, a String"},
		{with("body: Content", "body: Content, more: Int?"), "Message must have the members header, a record, and body, a String"},
		{with("  QUERY,", "  QUERY, PROPOSE,"), "gateways.acp.dsl: acme.acp:29:5: header.type must be an enum of REQUEST, RESPONSE, INFORM, QUERY, ACKNOWLEDGE, ERROR"},
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

// a mistyped annotation in the declarations is a warning of the file that names them.
func TestAnnotationsOfACP(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../spec/gateways/acp/acp-1.0.acp")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "acme.acp"), append([]byte("@opn type Extra = { a: Int }\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Parse("swarm.toml", []byte(withACP), dir, testOptions)
	if err != nil {
		t.Fatal(err)
	}
	want := `swarm.toml:12:1: gateways.acp.dsl: acme.acp:1:2: @opn has no effect; those that have one are @open, @closed, @plain, @field (did you mean "open"?); see skep acp check`
	if got := fmt.Sprint(cfg.Warnings); !strings.Contains(got, want) {
		t.Errorf("warnings %s, want %s", got, want)
	}
}

// The right relay has an effect for partners of ACP, AMP and IaCP alone.
func TestRelayRight(t *testing.T) {
	t.Parallel()
	base, _, _ := strings.Cut(withACP, "[gateways.acp]")
	for name, effective := range map[string]bool{"acp": true, "amp": true, "a2a": false} {
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

// acmeSite has declarations with x_token, x_order and x_note besides ACP 1.0; more are keys.
func acmeSite(t *testing.T, more string) (*Config, error) {
	t.Helper()
	return acmeSiteWith(t, "header: {", more)
}

// acmeSiteWith is acmeSite with another beginning of the header.
func acmeSiteWith(t *testing.T, header, more string) (*Config, error) {
	t.Helper()
	text, err := os.ReadFile("../../../../spec/gateways/acp/acp-1.0.acp")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	declared := strings.Replace(string(text), "conversation_id: String?", "conversation_id: String?, x_token: String, x_order: Int?, x_note: String?", 1)
	declared = strings.Replace(declared, "header: {", header, 1)
	if err := os.WriteFile(filepath.Join(dir, "acme.acp"), []byte(declared), 0o600); err != nil {
		t.Fatal(err)
	}
	return Parse("swarm.toml", []byte(withACP+more), dir, testOptions)
}

// a partner's header fields are held against the declarations, and what these
// demand and no message of ours would have is told.
func TestHeaderOfPartners(t *testing.T) {
	t.Parallel()
	const partner = "[gateways.acp.partners.acme]\n"
	for _, c := range []struct{ header, warning, fault string }{
		{"", "messages of our agents to it lack x_token, which dsl demands; add it to header", ""},
		{`header = { x_token = "t", x_order = 7, x_other = [1] }`, "", ""},
		{`header = { x_token = "t", x_ordr = 7 }`, `gateways.acp.partners.acme.header.x_ordr is no field that dsl declares; did you mean "x_order"?`, ""},
		{`header = { x_token = "t", x_order = 7, x_ordr = 7, x_other = [1] }`, "", ""},
		{`header = { x_token = 7 }`, "", "x_token"},
		{`header = { x_token = "t", x_order = "7" }`, "", "x_order"},
		{`header = { sender = "t" }`, "", "header fields of your own begin with x_"},
		{`header = { x_hops = "t" }`, "", "are the gateway's"},
		{`header = { x_token = "` + strings.Repeat("t", 5000) + `" }`, "", "at most 4096 bytes"},
		{`header = { x_token = "env::NOWHERE" }`, "", "NOWHERE"},
		{`header = "x_token"`, "", "must be a table"},
	} {
		cfg, err := acmeSite(t, partner+c.header)
		if err != nil {
			if c.fault == "" || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%.60s: %v, want %q", c.header, err, c.fault)
			}
			continue
		}
		warned := fmt.Sprint(cfg.Warnings)
		if c.fault != "" || !strings.Contains(warned, c.warning) || c.warning == "" && (strings.Contains(warned, "lack") || strings.Contains(warned, "did you mean")) {
			t.Errorf("%.60s: warnings %v, want %q or the fault %q", c.header, warned, c.warning, c.fault)
		}
		if own := cfg.Gateways[0].Partners[0].Protocol.(*ACPPartner).Header; c.warning == "" && (string(own.Raw()["x_order"]) != "7" || string(own.Raw()["x_other"]) != "[1]" || strings.Contains(fmt.Sprint(own), "7")) {
			t.Errorf("the fields are %v", own.Raw())
		}
	}
}

// Limits that the codec does not reach would have no effect, and are refused.
func TestBoundsOfACP(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`max_body = "1MiB"`: "", "max_depth = 64": "",
		`max_body = "2MiB"`: "gateways.acp.max_body must be at most 1MiB", "max_depth = 65": "gateways.acp.max_depth must be at most 64",
	} {
		_, err := acmeSite(t, text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// What the declarations hold is explained: types, fields and answers.
func TestExplainDeclarations(t *testing.T) {
	t.Parallel()
	cfg, err := acmeSite(t, "")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, l := range Explain(cfg) {
		shown[l.Key] = l.Value
	}
	for name, want := range map[string]string{
		"Header.reply_to": "MessageID?", "Header.x_token": "String", "Header.x_order": "Int?", "MessageType.QUERY": "expects INFORM { reply_to, conversation_id }",
	} {
		if got := shown["gateways.acp.dsl."+name]; got != want {
			t.Errorf("%s is explained as %q, want %q", name, got, want)
		}
	}
}

// partners have topics of their own at one broker; what does not fit together is told
// at its line, and what is readable on the way is warned of.
func TestBrokerOfACP(t *testing.T) {
	t.Parallel()
	base, _, _ := strings.Cut(withACP, "[gateways.acp]")
	const broker, acme = "[gateways.acp.mqtt]\nbroker = \"mqtts://broker.example\"\n", "[gateways.acp.partners.acme]\ntopics = \"acp/v1/acme\"\n"
	other := strings.ReplaceAll(acme, "partners.acme", "partners.other")
	for _, c := range []struct{ text, fault, warning string }{
		{broker + acme, "", ""},
		{acme, "acme.topics needs broker in gateways.acp.mqtt", ""},
		{broker + acme + other, `other.topics is "acp/v1/acme", which the partner acme has as well`, ""},
		{broker, "", "gateways.acp.mqtt.broker has no effect"},
		{broker + acme + "url = \"https://acme.example\"\n", "", "acme.url has no effect"},
		{strings.Replace(broker, "mqtts", "mqtt", 1) + acme, "", "in the clear"},
		{strings.Replace(broker, "mqtts://broker.example", "mqtt://127.0.0.1:1883", 1) + acme, "", ""},
		{strings.Replace(broker, "mqtts://broker.example", "mqtt://user@127.0.0.1", 1) + acme, "must be an address as in", ""},
		{strings.Replace(broker, "mqtts://", "https://", 1) + acme, "must be an address as in", ""},
		{broker + "password = \"0123456789\"\n" + acme, "password needs username", ""},
		{broker + "username = \"\"\n" + acme, "must have 1 to 128 printable bytes", ""},
		{broker + strings.Replace(acme, "acp/v1/acme", "acp/+/acme", 1), "must be a topic as in", ""},
		{broker + strings.Replace(acme, "acp/v1/acme", "acp//acme", 1), "must be a topic as in", ""},
		{broker + strings.Replace(acme, "acp/v1/acme", "", 1), "must be a topic as in", ""},
	} {
		cfg, err := Parse("swarm.toml", []byte(base+c.text), t.TempDir(), testOptions)
		if (c.fault == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s\nwant %q, got %v", c.text, c.fault, err)
		}
		if err != nil {
			continue
		}
		if got := fmt.Sprint(cfg.Warnings); (c.warning == "") != (len(cfg.Warnings) == 0) || !strings.Contains(got, c.warning) {
			t.Errorf("%s\nwant the warning %q, got %s", c.text, c.warning, got)
		}
		if got := cfg.Gateways[0].Protocol.(*ACP).MQTT.Broker; strings.Contains(c.text, "mqtts") && got != "mqtts://broker.example:8883" {
			t.Errorf("the broker is %s", got)
		}
	}
}

// TestClosedHeader: a closed header has no place for fields that are not declared.
func TestClosedHeader(t *testing.T) {
	t.Parallel()
	cfg, err := acmeSiteWith(t, "@closed header: {", "[gateways.acp.partners.acme]\nheader = { x_token = \"t\", x_other = 1 }")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(cfg.Warnings), "swarm.toml:14:27: gateways.acp.partners.acme.header.x_other is no field that dsl declares"; !strings.HasSuffix(got, want) {
		t.Errorf("warnings %s, want %s", got, want)
	}
}

// TestUnreadTypes: a declared type that is no part of what the gateway reads is warned of at its place.
func TestUnreadTypes(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../../spec/gateways/acp/acp-1.0.acp")
	if err != nil {
		t.Fatal(err)
	}
	const own = `type AcmeMessage = {
  header: { sender: AgentID, x_order: Order },
  body: Content
}
type Order = { of: List<Part> }
enum Part { NUT, BOLT }
`
	for _, c := range []struct {
		text  string
		types []string
	}{
		{string(document), nil},
		{string(document) + "type Part = String", []string{"acme.acp:48:6: the type Part is in no Message, and the gateway reads nothing else: it has no effect; see skep acp check"}},
		{strings.Replace(string(document), "conversation_id: String?", "conversation_id: String?, x_order: Map<String, List<Order>>?", 1) + "type Order = { part: { of: Part? } }\nenum Part { NUT }", nil},
		{"import \"document.acp\"\n" + own, []string{"acme.acp:2:6: the type AcmeMessage is in no Message", "acme.acp:6:6: the type Order is in no Message", "acme.acp:7:6: the type Part is in no Message"}},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"document.acp": string(document) + "type Unused = Int\n", "acme.acp": c.text} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cfg, err := Parse("swarm.toml", []byte(withACP), dir, testOptions)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		var warned []string
		for _, w := range cfg.Warnings {
			if strings.Contains(w.Message, "gateways.acp.dsl: ") {
				warned = append(warned, w.String())
			}
		}
		if len(warned) != len(c.types) {
			t.Errorf("%s\nwarnings %q, want %q", c.text, warned, c.types)
			continue
		}
		for i, want := range c.types {
			if !strings.Contains(warned[i], "swarm.toml:12:1: gateways.acp.dsl: "+want) {
				t.Errorf("%q, want %q", warned[i], want)
			}
		}
	}
}
