package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skep/host/internal/gateway/acp/check"
	"skep/host/internal/gateway/acp/dsl"
	"skep/host/internal/spelling"
)

// ACP has the keys that only [gateways.acp] has.
type ACP struct {
	DSL string
	// Declarations are what the file of DSL declares, nil without it.
	Declarations *dsl.Schema
	MQTT         MQTT
}

// ACPPartner has the keys that only partners of [gateways.acp] have.
type ACPPartner struct {
	Header HeaderFields
	Topics string
}

// HeaderFields are fields in the headers of messages, by name: each is JSON.
type HeaderFields map[string]Secret

// Raw are the fields as messages have them.
func (f HeaderFields) Raw() map[string]json.RawMessage {
	raw := map[string]json.RawMessage{}
	for name, value := range f {
		raw[name] = json.RawMessage(value.Reveal())
	}
	return raw
}

var acpProtocol = protocol{
	called: true, rights: []string{"ask", "tell", "relay"}, maxBody: check.MaxMessage, maxDepth: 64,
	alone:   "mailboxes and open connections are one host's",
	keys:    func() Keys { return new(ACP) },
	partner: func() Keys { return new(ACPPartner) },
	check:   gatewayReader.checkMQTT,
}

// Declared lists what the file of dsl declares: types, and which answer each type of
// message expects.
func (a *ACP) Declared() []dsl.Declared {
	if a.Declarations == nil {
		return nil
	}
	return a.Declarations.Declared()
}

// Settings are the keys of the gateway.
func (a *ACP) Settings() []Setting {
	return []Setting{
		field(&a.DSL, "dsl", "path", a.readDeclarations, "Declarations of messages with more header fields than ACP 1.0 has, as in `file:acme.acp`: messages must fit them."),
		section("mqtt", a.MQTT.Settings(), "A broker of MQTT 5, over which partners with `topics` send and get messages."),
	}
}

// Settings are the keys of a partner.
func (p *ACPPartner) Settings() []Setting {
	return []Setting{
		field(&p.Header, "header", "table", readHeader, "Fields in the header of each message that our agents write to it, as `{ x_token = \"env::ACME_TOKEN\" }`."),
		field(&p.Topics, TopicsKey, "topic", (*table).topic, "Topic at the broker of `mqtt` below which its agents write to AGENT/out and read at AGENT/in. Who may write there by the access list of the broker is the partner.").by(Fixed),
	}
}

// readHeader reads fields of headers. The gateway's own are not set by a file.
func readHeader(t *table, key string) HeaderFields {
	sub := t.table(key)
	fields := HeaderFields{}
	for _, name := range sub.names() {
		v, at, _ := sub.lookUp(name)
		if text, isText := v.(string); isText {
			resolved, ok := sub.d.resolve(at, text)
			if !ok {
				continue
			}
			v = resolved.text
		}
		raw, err := json.Marshal(v)
		switch {
		case !strings.HasPrefix(name, extraPrefix) || slices.Contains(gatewaysFields, name):
			t.d.atKey(at, fmt.Sprintf("%s: header fields of your own begin with %s, and %s are the gateway's", at.path, extraPrefix, strings.Join(gatewaysFields, ", ")))
		case err != nil || len(raw) > maxHeaderField:
			t.d.atValue(at, fmt.Sprintf("%s must be JSON of at most %d bytes", at.path, maxHeaderField))
		default:
			fields[name] = Secret(raw)
		}
	}
	sub.refuseUnknown()
	return fields
}

// extraPrefix begins the names of header fields that ACP 1.0 does not have, maxHeaderField
// bounds one in bytes. gatewaysFields are set for each message.
const (
	extraPrefix    = "x_"
	maxHeaderField = 4 << 10
)

var gatewaysFields = []string{"x_hops", "x_mail_type", "x_subject", "x_traceparent", "x_tracestate"}

// checkPartners holds the header fields of partners against the declarations.
func (a *ACP) checkPartners(r gatewayReader, g Gateway) {
	if a.Declarations == nil || checkDeclarations(a.Declarations) != nil {
		return
	}
	header, _ := findField(a.Declarations.Root(), "header")
	for _, p := range g.Partners {
		given := p.Protocol.(*ACPPartner).Header.Raw()
		at := r.t.child("partners").child(p.Name)
		for _, f := range header.Type.Fields {
			_, own := headerFields[f.Name]
			value, has := given[f.Name]
			switch {
			case own || f.Name == "type", slices.Contains(gatewaysFields, f.Name):
			case !has && !f.Optional:
				r.d.warn(at, fmt.Sprintf("%s: messages of our agents to it lack %s, which dsl demands; add it to header", at.path, f.Name))
			case has:
				one := &dsl.Type{Kind: dsl.Record, Name: "header", Fields: []dsl.Field{f}}
				if err := check.Message(one, []byte(fmt.Sprintf("{%q:%s}", f.Name, value))); err != nil {
					r.d.atValue(at.child("header").child(f.Name), fmt.Sprintf("%s: %v", at.path, err))
				}
			}
		}
		a.checkNames(r.d, at.child("header"), header.Type, given)
	}
}

// checkNames warns of fields that the declarations do not have where one is probably
// mistyped, or where these have no place for others.
func (a *ACP) checkNames(d *decoder, at location, header *dsl.Type, given map[string]json.RawMessage) {
	var free []string
	for _, f := range header.Fields {
		if name, own := strings.CutPrefix(f.Name, extraPrefix); own && given[f.Name] == nil {
			free = append(free, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, declared := findField(header, name); declared {
			continue
		}
		why := fmt.Sprintf("%s is no field that dsl declares", at.child(name).path)
		near := spelling.Nearest(strings.TrimPrefix(name, extraPrefix), free)
		if near != "" {
			why += fmt.Sprintf("; did you mean %q?", extraPrefix+near)
		}
		if near != "" || !header.Open {
			d.warn(at.child(name), why)
		}
	}
}

// declarationsPrefix begins the value of dsl.
const declarationsPrefix = "file:"

// readDeclarations compiles the file that dsl names.
func (a *ACP) readDeclarations(t *table, key string) string {
	v, ok := t.value(key)
	if !ok {
		return ""
	}
	name, ok := strings.CutPrefix(v.text, declarationsPrefix)
	if !ok || name == "" {
		t.d.atValue(v.location, v.path+` must name a file, as in "file:acme.acp"`)
		return ""
	}
	full := t.d.path(name)
	schema, err := dsl.Load(filepath.Base(full), func(name string) (string, error) {
		at := filepath.Join(filepath.Dir(full), filepath.FromSlash(name))
		t.d.refer(at, false)
		return readDeclaration(at)
	})
	help := "; see skep acp check"
	if err == nil {
		if err = checkDeclarations(schema); err != nil {
			help = "" // the declarations are good in themselves
		}
	}
	inLine := func(f dsl.Fault) string {
		f.Source = "" // a fault is one line here
		return fmt.Sprintf("%s: %s%s", v.path, f, help)
	}
	var faults dsl.Faults
	switch {
	case errors.As(err, &faults):
		t.d.atValue(v.location, inLine(faults[0]))
	case err != nil:
		t.d.atValue(v.location, fmt.Sprintf("%s: %s: %s", v.path, name, err))
	default:
		for _, w := range schema.Warnings {
			t.d.warn(v.location, inLine(w))
		}
		for _, w := range schema.Unread(schema.Root()) {
			if w.File == filepath.Base(full) { // an import may be of others as well
				w.Message += ", and the gateway reads nothing else: it has no effect"
				t.d.warn(v.location, inLine(w))
			}
		}
	}
	a.Declarations = schema
	return full
}

// readDeclaration reads one file, up to a little more than a compiler takes.
func readDeclaration(name string) (string, error) {
	if err := isFile(name); err != nil {
		return "", err
	}
	f, err := os.Open(name)
	if err != nil {
		return "", reason(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, dsl.MaxBytes+1))
	return string(text), err
}

// messageTypes are the types of messages of ACP 1.0, headerFields the texts of their
// headers, and which of these may be absent.
var (
	messageTypes = []string{"REQUEST", "RESPONSE", "INFORM", "QUERY", "ACKNOWLEDGE", "ERROR"}
	headerFields = map[string]bool{
		"version": false, "sender": false, "receiver": false, "id": false, "timestamp": false, "content_type": false,
		"reply_to": true, "conversation_id": true,
	}
)

// checkDeclarations refuses declarations that messages of ACP 1.0 do not fit, but for
// further header fields. The error is [dsl.Faults] where the declarations have a message.
func checkDeclarations(s *dsl.Schema) error {
	root := s.Root()
	if root == nil {
		return errors.New("no record is declared that a message could be")
	}
	header, hasHeader := findField(root, "header")
	if body, has := findField(root, "body"); !hasHeader || !has || len(root.Fields) != 2 || header.Type.Kind != dsl.Record || plainKind(body) != dsl.String {
		return dsl.Faults{root.Fault("", root.Name+" must have the members header, a record, and body, a String")}
	}
	for _, name := range slices.Sorted(maps.Keys(headerFields)) {
		optional := headerFields[name]
		if f, has := findField(header.Type, name); !has || f.Optional != optional || plainKind(f) != dsl.String {
			return dsl.Faults{header.Type.Fault(name, fmt.Sprintf("header.%s must be as in ACP 1.0: a String, and %s", name, map[bool]string{true: "optional", false: "not optional"}[optional]))}
		}
	}
	kind, has := findField(header.Type, "type")
	if !has || kind.Optional || plainKind(kind) != dsl.Enum || !slices.EqualFunc(kind.Type.Plain().Values, messageTypes, func(v dsl.EnumValue, name string) bool { return v.Name == name }) {
		return dsl.Faults{header.Type.Fault("type", "header.type must be an enum of "+strings.Join(messageTypes, ", "))}
	}
	return nil
}

func findField(record *dsl.Type, name string) (dsl.Field, bool) {
	i := slices.IndexFunc(record.Fields, func(f dsl.Field) bool { return f.Name == name })
	if i < 0 {
		return dsl.Field{}, false
	}
	return record.Fields[i], true
}

// plainKind is the kind of a field's type behind its names.
func plainKind(f dsl.Field) dsl.Kind {
	t := f.Type
	for t.Kind == dsl.Alias {
		t = t.Elem
	}
	return t.Kind
}
