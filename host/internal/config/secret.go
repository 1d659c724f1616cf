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

func (d *decoder) secrets(t *table) (out []SecretGrant, names []string) {
	names, subs := t.named("secrets")
	for i, sub := range subs {
		d.checkLocal(sub.spot, names[i], "a secret")
		out = append(out, d.secret(names[i], sub))
	}
	return out, names
}

func (d *decoder) secret(name string, t *table) SecretGrant {
	for _, key := range []string{"value", "hosts", "header"} {
		if !t.has(key) {
			t.missing(key, "")
		}
	}
	s := SecretGrant{
		Name:  name,
		Value: Secret(t.text("value", "")),
		Hosts: t.origins("hosts"),
		Pos:   d.pos(t.spot),
	}
	if t.has("hosts") && len(s.Hosts) == 0 {
		d.atKey(t.child("hosts"), t.path+".hosts must name at least one origin")
	}
	if v, ok := t.value("header"); ok {
		s.Header = v.text
		if !headerName.MatchString(v.text) {
			d.atValue(v.spot, v.path+" must be the name of an HTTP header")
		}
	}
	t.done()
	return s
}
