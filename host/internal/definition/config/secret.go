package config

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is text that must not be printed, logged or encoded by accident.
type Secret string

const redacted = "[secret]"

// Reveal gives the text.
func (s Secret) Reveal() string { return string(s) }

// Format keeps every verb of package fmt from printing the text.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue keeps package slog from logging the text.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText keeps encoders from writing the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// SecretGrant is one [secrets.NAME] table: a secret and where the host may put
// it.
type SecretGrant struct {
	Name   string
	Value  Secret
	Hosts  []string // origins
	Header string
	Pos    Pos
}

func (s *SecretGrant) Settings() []Setting {
	return []Setting{
		secretText(&s.Value, "value", "The secret, by `env::` or `file::`.").needed(""),
		field(&s.Hosts, "hosts", "list of origins", (*table).origins, "Where it may go.").needed("").by(Grant),
		text(&s.Header, "header", "The header that the host puts it into.").needed(""),
	}
}

// warnLiteral warns of a secret that stands in the file itself.
func (d *decoder) warnLiteral(v value) {
	if !v.ref && v.text != "" && d.remote == nil {
		d.warn(v.location, fmt.Sprintf(`%s stands in this file, and whoever reads the file has it; write "env::NAME" or "file::PATH"`, v.path))
	}
}

func (d *decoder) secrets(t *table) (out []SecretGrant, names []string) {
	names, subs := t.named("secrets")
	for i, sub := range subs {
		d.checkLocal(sub.location, names[i], "a secret")
		out = append(out, d.secret(names[i], sub))
	}
	return out, names
}

func (d *decoder) secret(name string, t *table) SecretGrant {
	s := SecretGrant{Name: name, Pos: d.pos(t.location)}
	t.read(s.Settings())
	if t.has("hosts") && len(s.Hosts) == 0 {
		d.atKey(t.child("hosts"), t.path+".hosts must name at least one origin")
	}
	if v, ok := t.value("header"); ok && !headerName.MatchString(v.text) {
		d.atValue(v.location, v.path+" must be the name of an HTTP header")
	}
	t.refuseUnknown()
	return s
}
