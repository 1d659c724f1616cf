package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/api/audit"
	"skep/host/internal/hosttest"
)

// forgedLine is what a text of an attacker begins a line with.
const forgedLine = "skep-forged-line"

// hostileTexts are ids that a host could take for more than a name.
func hostileTexts() map[string]string {
	return map[string]string{
		"line end":         "a\r\n" + forgedLine + ": 1\r\n\r\n{}",
		"line feed":        "a\n" + forgedLine,
		"line separator":   "a\u2028" + forgedLine + "\u0085" + forgedLine,
		"path":             "../../../../../../" + forgedLine,
		"escaped path":     "..%2f..%2f..%2f" + forgedLine,
		"absolute path":    "/tmp/" + forgedLine,
		"another host":     "//" + forgedLine + "/x",
		"query":            "a?b=1#" + forgedLine,
		"NUL":              "a\x00" + forgedLine,
		"escaped NUL":      "%00" + forgedLine,
		"terminal":         "\x1b]0;" + forgedLine + "\x07\x1b[2J\x1b[1A",
		"direction":        "\u202e" + forgedLine,
		"a record's bound": "a','','');--" + forgedLine,
		"long":             forgedLine + strings.Repeat("x", 70_000),
	}
}

// hostileValues are values of JSON that stand in place of each member of a message.
func hostileValues() map[string]string {
	values := map[string]string{
		"too large for a double":  "1e400",
		"too small for a double":  "-1e400",
		"a thousand digits":       strings.Repeat("9", 1000),
		"a thousand behind point": "0." + strings.Repeat("3", 1000) + "e-999999999",
		"beyond 64 bits":          "18446744073709551616",
		"negative":                "-9223372036854775809",
		"negative zero":           "-0.0",
		"no number":               "NaN",
		"infinity":                "-Infinity",
		"hexadecimal":             "0x10",
		"null":                    "null",
		"truth":                   "true",
		"list":                    "[[],[{}]]",
		"object":                  `{"":{"":[]}}`,
		"many members":            collidingMembers(),
	}
	for name, text := range hostileTexts() {
		raw, err := json.Marshal(text)
		if err != nil {
			panic(err)
		}
		values[name] = string(raw)
	}
	return values
}

// collidingMembers is an object of 4,096 members whose names have one value of the hash that
// multiplies by 31 (https://fahrplan.events.ccc.de/congress/2011/Fahrplan/events/4680.en.html).
func collidingMembers() string {
	var b strings.Builder
	b.WriteByte('{')
	for n := range 4096 {
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		for bit := range 12 {
			b.WriteString([]string{"Aa", "BB"}[n>>bit&1])
		}
		b.WriteString(`":0`)
	}
	return b.String() + "}"
}

// hostileIDs: an id is a name and nothing else, whatever it looks like. What has it is refused, or
// is a message of its own that can be found; it is no other caller's, leads to no file and begins no
// line of a log.
func (s *suite) hostileIDs(t *testing.T) {
	own := s.attacked(t, "")
	cl := own.dial(t, own.token())
	victim := Message{ID: id(t, "victim"), To: "boss", Thread: id(t, "victim"), Text: hosttest.Script(finish("the victim's"))}
	wantText(t, send(t, cl, victim), nil, "the victim's")
	places := map[string]func(m *Message, text string){
		"id":     func(m *Message, text string) { m.ID = text },
		"thread": func(m *Message, text string) { m.Thread = text },
		"to":     func(m *Message, text string) { m.To = text },
	}
	if _, unnamed := s.p.Without["13"]; !unnamed {
		places["from"] = func(m *Message, text string) { m.From = text }
	}
	texts := hostileTexts()
	texts["the victim's path"] = "x/../" + victim.ID
	for _, place := range slices.Sorted(maps.Keys(places)) {
		t.Run(place, func(t *testing.T) {
			s.part(t, "31/"+place, func() { hostileTextsAt(t, cl, places[place], texts) })
		})
	}
	got, err := cl.Look(t.Context(), victim)
	wantText(t, got, err, "the victim's")
	own.checkWritten(t)
}

// hostileTextsAt sends messages that have the texts in one place.
func hostileTextsAt(t *testing.T, cl Client, put func(m *Message, text string), texts map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		want := "own " + name
		m := Message{ID: id(t, name), To: "boss", Text: hosttest.Script(finish(want))}
		put(&m, texts[name])
		got, err := cl.Send(t.Context(), m)
		if !isOwnRefusal(err) { // a message that ends its connection does so again
			got, err = cl.Send(t.Context(), m)
		}
		if err == nil {
			got, err = cl.Look(t.Context(), m)
		}
		if !isOwnRefusal(err) || err == nil && (got.Status != Done || got.Text != want) {
			t.Errorf("%s: %s %.200q, %.300v", name, got.Status, got.Text, err)
		}
	}
}

// hostileMembers: each value of a message is replaced by each of the hostile ones, as the
// protocol has it. The host refuses it in the protocol's form or takes it, and serves on.
func (s *suite) hostileMembers(t *testing.T) {
	own := s.attacked(t, "")
	cl, values := own.dial(t, own.token()), hostileValues()
	m := Message{ID: id(t, "1"), To: "boss", Thread: id(t, "thread"), Text: hosttest.Script(finish("taken"))}
	wantText(t, send(t, cl, m), nil, "taken")
	for at := 0; ; at++ {
		m.ID = id(t, fmt.Sprint("member ", at))
		body := cl.Encode(m)
		path, more := "", false
		for _, name := range slices.Sorted(maps.Keys(values)) {
			var changed []byte
			if changed, path, more = replaceValue(t, body, at, values[name]); !more {
				break
			}
			if s.p.Sign != nil {
				changed = s.p.Sign(changed)
			}
			if _, err := cl.Post(t.Context(), changed); !isOwnRefusal(err) {
				t.Errorf("%s: %s: %.300v", path, name, err)
			}
		}
		if !more {
			if at < 4 {
				t.Errorf("a message has %d values", at)
			}
			break
		}
	}
	m.ID = id(t, "last")
	wantText(t, send(t, cl, m), nil, "taken")
	own.checkWritten(t)
}

// isOwnRefusal reports whether an error is nil, or a refusal for a reason that is the message's.
func isOwnRefusal(err error) bool {
	var no *Refused
	return err == nil || errors.As(err, &no) && no.Reason != "" && no.Reason != Internal && no.Reason != Stopping
}

// attacked is the suite with a host of its own, which limits no caller's rate, with lines of its
// table [server].
func (s *suite) attacked(t *testing.T, server string) *suite {
	t.Helper()
	own := *s
	own.server = server
	own.web, own.foreign, own.log = newWeb(t), newForeign(), &hosttest.LogBuffer{}
	dir := filepath.Join(t.TempDir(), "a", "b", "c", "d")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	own.write(t, dir, "requests = RATE", "requests = 0")
	own.site = startSite(t, own.p, dir, own.log)
	own.site.StopAtEnd(t)
	own.root = filepath.Join(dir, "..", "..", "..", "..")
	return &own
}

// checkWritten looks at what the host has written about an attack: each line of its log and of the
// chained logs is whole and one record, no character moves a terminal, and no file has its name.
func (s *suite) checkWritten(t *testing.T) {
	t.Helper()
	written := map[string][]byte{"the log": s.log.Bytes()}
	for _, name := range []string{audit.Name, audit.MessagesName} {
		file := filepath.Join(s.site.Data, name)
		n := 0
		if err := audit.Entries(file, func(int64, audit.Entry) { n++ }, nil); err != nil || n == 0 {
			t.Errorf("%s has %d entries: %v", name, n, err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		written[name] = text
	}
	for where, text := range written {
		for line := range bytes.Lines(text) {
			if !json.Valid(line) || bytes.ContainsFunc(bytes.TrimSuffix(line, []byte("\n")), movesTerminal) {
				t.Errorf("%s has the line %.300q", where, line)
			}
		}
	}
	if !bytes.Contains(written[audit.MessagesName], []byte(forgedLine)) && s.p.Sign == nil {
		t.Errorf("%s has nothing of the attack", audit.MessagesName)
	}
	err := filepath.WalkDir(s.root, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(filepath.Base(path), forgedLine) {
			t.Errorf("there is %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// movesTerminal are the control characters, of C0 and C1, and DEL.
func movesTerminal(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// replaceValue replaces the text, number or truth of a JSON text that stands at a place, in the
// order of the names of members, and returns the path to it.
func replaceValue(t *testing.T, text []byte, at int, raw string) (changed []byte, path string, ok bool) {
	t.Helper()
	var value any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Fatal(err)
	}
	const mark = "REPLACED"
	value, path, ok = replaceAt(value, &at, mark)
	changed, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Replace(changed, []byte(`"`+mark+`"`), []byte(raw), 1), path, ok
}

// replaceAt replaces the value that so many others stand before.
func replaceAt(value any, before *int, by string) (changed any, path string, ok bool) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if v[name], path, ok = replaceAt(v[name], before, by); ok {
				return v, "." + name + path, true
			}
		}
		return v, "", false
	case []any:
		for i := range v {
			if v[i], path, ok = replaceAt(v[i], before, by); ok {
				return v, fmt.Sprintf("[%d]%s", i, path), true
			}
		}
		return v, "", false
	}
	*before--
	if *before == -1 {
		return by, "", true
	}
	return value, "", false
}
