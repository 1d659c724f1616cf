package abi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	moduleName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	// moduleVersion is printable ASCII.
	moduleVersion = regexp.MustCompile(`^[ -~]{1,64}$`)
	actionName    = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
)

// check refuses texts that are missing, too long, or would forge lines where
// they are shown.
func (d *Descriptor) check() error {
	switch {
	case d.Name == "" || d.Version == "":
		return errors.New("name and version are mandatory")
	case !moduleName.MatchString(d.Name):
		return fmt.Errorf("name %s does not match %s", shown(d.Name), moduleName)
	case !moduleVersion.MatchString(d.Version):
		return fmt.Errorf("version %s is not 1 to 64 printable ASCII characters", shown(d.Version))
	}
	w := wording{}
	w.description("description", d.Description)
	for i, a := range d.Agents {
		w.agent(fmt.Sprintf("agents[%d].", i), a)
	}
	for i, a := range d.Actions {
		w.action(fmt.Sprintf("actions[%d].", i), a)
	}
	for i, r := range d.Requests {
		w.request(fmt.Sprintf("requests[%d].", i), r)
	}
	return w.fault
}

// wording looks at texts and keeps the first fault.
type wording struct{ fault error }

func (w *wording) failf(format string, args ...any) {
	if w.fault == nil {
		w.fault = fmt.Errorf(format, args...)
	}
}

func (w *wording) agent(at string, a AgentDescriptor) {
	w.line(at+"name", a.Name, MaxWord)
	w.description(at+"description", a.Description)
	for i, role := range a.Roles {
		w.line(fmt.Sprintf("%sroles[%d]", at, i), role, MaxWord)
	}
	for i, c := range a.Capabilities {
		at := fmt.Sprintf("%scapabilities[%d].", at, i)
		w.line(at+"id", c.ID, MaxWord)
		w.line(at+"version", c.Version, MaxWord)
		w.description(at+"description", c.Description)
	}
}

func (w *wording) action(at string, a ActionDescriptor) {
	if !actionName.MatchString(a.Name) {
		w.failf("%sname %s does not match %s", at, shown(a.Name), actionName)
	}
	w.description(at+"description", a.Description)
	w.line(at+"timeout", a.Timeout, MaxWord)
}

func (w *wording) request(at string, r Request) {
	if r.Allow == "" || r.Reason == "" {
		w.failf("every request names what it asks for (allow) and why (reason); %s lacks one", strings.TrimSuffix(at, "."))
	}
	w.line(at+"allow", r.Allow, MaxWord)
	w.line(at+"reason", r.Reason, MaxReason)
	dec := json.NewDecoder(bytes.NewReader(r.Value))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			return // its end: it is JSON
		}
		if text, ok := token.(string); ok {
			w.line(at+"value", text, MaxReason)
		}
	}
}

// line wants a text that is one line.
func (w *wording) line(at, text string, most int) {
	if len(text) > most {
		w.failf("%s has %d bytes, at most %d", at, len(text), most)
	}
	if i := strings.IndexFunc(text, breaks); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		w.failf("%s holds the character %U, which has no place in it", at, r)
	}
}

// description wants a text whose only control characters are line feeds.
func (w *wording) description(at, text string) {
	w.line(at, strings.ReplaceAll(text, "\n", " "), MaxDescription)
}

// breaks reports whether a character ends a line or steers what shows it. Half
// a surrogate pair decodes to the last one.
func breaks(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) || r == utf8.RuneError
}

// shown quotes a text that may be of any length and kind.
func shown(text string) string {
	const most = 80
	if len(text) > most {
		return fmt.Sprintf("%+q… (%d bytes)", text[:most], len(text))
	}
	return fmt.Sprintf("%+q", text)
}
