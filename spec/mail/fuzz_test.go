package mail_test

import (
	"bytes"
	"testing"

	"skep/spec/conformance"
	"skep/spec/mail"
)

// FuzzParseMessage: nothing crashes the parser, whatever the options; what it
// takes it can write and take again, and leniency only ever takes more. That it
// agrees with the schema is fuzzed in host/internal/schema.
func FuzzParseMessage(f *testing.F) {
	for _, load := range []func() ([]conformance.Vector, error){conformance.Messages, conformance.Interswarm} {
		all, err := load()
		if err != nil {
			f.Fatal(err)
		}
		for _, v := range all {
			f.Add(v.Raw)
		}
	}
	for _, write := range []func([]byte) ([]byte, error){request().AppendJSON, wrapper().AppendJSON} {
		spaced, err := write(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Replace(spaced, []byte("T12"), []byte(" 12"), 1))
	}
	lenient := mail.ParseOptions{NullsAbsent: true, UnknownKeys: true, LooseTimes: true}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := mail.ParseMessage(raw)
		l, lenientErr := lenient.Message(raw)
		if err == nil && lenientErr != nil {
			t.Fatalf("taken, but not leniently: %v", lenientErr)
		}
		if err == nil {
			sameAgain(t, m, mail.ParseMessage)
			sameAgain(t, m, func(raw []byte) (mail.Message, error) {
				return mail.ParseOptions{}.LeadingMessage(append(raw, `,"more":{}}`...))
			})
		}
		if lenientErr == nil {
			sameAgain(t, l, mail.ParseMessage)
		}
		if w, err := lenient.Interswarm(raw); err == nil {
			sameAgain(t, w, mail.ParseInterswarm)
		}
	})
}
